// The declaration as a template, with the type of the result and of the arguments.
#include "autodiff.h"

template <typename Result, typename... Arguments>
Result __enzyme_autodiff(void *, Arguments...);

template <typename T>
T power(T x, int n) {
    T result = 1;
    for (int i = 0; i < n; i++) result *= x;
    return result;
}

int main() {
    SAME(__enzyme_autodiff<double>((void *)power<double>, enzyme_out, 1.5, enzyme_const, 4), 4 * std::pow(1.5, 3));
    NEAR(__enzyme_autodiff<float>((void *)power<float>, 1.5f, 4), 4 * std::pow(1.5, 3), 1e-6);
    return 0;
}
