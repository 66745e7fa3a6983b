// Two bases: pointers that are moved by an offset.
#include "autodiff.h"

struct Source {
    double level = 1;
    virtual double emit() const { return level; }
    virtual ~Source() = default;
};
struct Filter {
    double gain = 2;
    virtual double pass(double x) const { return gain * x; }
    virtual ~Filter() = default;
};
struct Device final : Source, Filter {
    double state;
    explicit Device(double s) : state(s) {}
    double emit() const override { return level * state; }
    double pass(double x) const override { return gain * x + state; }
};

__attribute__((noinline)) static double use(const Source &s, const Filter &f) { return f.pass(s.emit()) * s.level; }

double f(double x) {
    Device d(x);
    d.level = x * x;
    return use(d, d);
}

int main() {
    double x = 1.2;  // (2 x³ + x) x² = 2 x⁵ + x³
    SAME(__enzyme_autodiff((void *)f, x), 10 * std::pow(x, 4) + 3 * x * x);
    return 0;
}
