// Destructors that an exception would run; none is thrown.
#include "autodiff.h"
#include <stdexcept>
#include <string>

static int alive;

struct Guard {
    std::string name;
    explicit Guard(const char *n) : name(n) { alive++; }
    ~Guard() { alive--; }
};

__attribute__((noinline)) static double checked(double x) {
    Guard guard("a name that is too long for the small buffer of a string");
    if (x < 0) throw std::domain_error("negative");
    return std::sqrt(x);
}

double f(double x) {
    Guard guard("outer");
    return checked(x) * checked(2 * x);
}

int main() {
    SAME(__enzyme_autodiff((void *)f, 3.0), std::sqrt(2.0));
    SAME(alive, 0);
    try {
        f(-1);
        return 1;
    } catch (const std::domain_error &) {
    }
    return 0;
}
