// Base classes that know what is derived from them.
#include "autodiff.h"

template <typename Derived>
struct Activation {
    double operator()(double x) const { return static_cast<const Derived *>(this)->apply(x); }
};
struct Sigmoid : Activation<Sigmoid> {
    double apply(double x) const { return 1 / (1 + std::exp(-x)); }
};
struct Softplus : Activation<Softplus> {
    double apply(double x) const { return std::log1p(std::exp(x)); }
};

template <typename A, typename B>
double network(double x) {
    A a;
    B b;
    return b(a(x) * 2);
}

int main() {
    double x = 0.7, s = 1 / (1 + std::exp(-x));
    SAME(__enzyme_autodiff((void *)network<Sigmoid, Softplus>, x), 2 * s * (1 - s) / (1 + std::exp(-2 * s)));
    return 0;
}
