// Arrays and objects from operator new.
#include "autodiff.h"

struct Buffer {
    double *data;
    int size;
    explicit Buffer(int n) : data(new double[n]), size(n) {}
    Buffer(const Buffer &) = delete;
    ~Buffer() { delete[] data; }
    double &operator[](int i) { return data[i]; }
};

double f(const double *x, int n) {
    Buffer b(n);
    for (int i = 0; i < n; i++) b[i] = std::exp(x[i]);
    double *sum = new double(0);
    for (int i = 0; i < n; i++) *sum += b[i] * b[n - 1 - i];
    double result = *sum;
    delete sum;
    return result;
}

int main() {
    double x[5] = {0.1, 0.2, 0.3, 0.4, 0.5}, dx[5] = {};
    __enzyme_autodiff((void *)f, x, dx, 5);
    for (int i = 0; i < 5; i++) SAME(dx[i], 2 * std::exp(x[i] + x[4 - i]));
    return 0;
}
