// Derivatives in several threads at once: each has a tape of its own.
#include "autodiff.h"
#include <thread>
#include <vector>

double f(double x, int n) {
    double y = x;
    for (int i = 0; i < n; i++) y = y * std::sin(y) + x;
    return y;
}

int main() {
    double alone[4], together[4];
    for (int k = 0; k < 4; k++) alone[k] = __enzyme_autodiff((void *)f, 0.1 * (k + 1), 20 * (k + 1));
    std::vector<std::thread> threads;
    for (int k = 0; k < 4; k++)
        threads.emplace_back([&, k] {
            for (int again = 0; again < 50; again++)
                together[k] = __enzyme_autodiff((void *)f, 0.1 * (k + 1), 20 * (k + 1));
        });
    for (std::thread &thread : threads) thread.join();
    for (int k = 0; k < 4; k++) {
        double x = 0.1 * (k + 1), h = 1e-7;
        int n = 20 * (k + 1);
        SAME(together[k], alone[k]);
        NEAR(alone[k], (f(x + h, n) - f(x - h, n)) / (2 * h), 1e-5);
    }
    return 0;
}
