// Vectors that the differentiated function makes, of known and of growing size.
#include "autodiff.h"
#include <vector>

double f(double x, int n) {
    std::vector<double> powers(n);
    powers[0] = x;
    for (int i = 1; i < n; i++) powers[i] = powers[i - 1] * x;
    double sum = 0;
    for (auto it = powers.begin(); it != powers.end(); ++it) sum += *it;
    return sum;
}

double g(double x, int n) {
    std::vector<double> items;
    for (int i = 0; i < n; i++) items.push_back(i == 0 ? x : items.back() * x);
    double sum = 0;
    for (std::size_t i = 0; i < items.size(); i++) sum += items[i];
    return sum;
}

int main() {
    double x = 1.1, wanted = 0;
    for (int i = 1; i <= 6; i++) wanted += i * std::pow(x, i - 1);
    SAME(__enzyme_autodiff((void *)f, x, 6), wanted);
    SAME(__enzyme_autodiff((void *)g, x, 6), wanted);
    return 0;
}
