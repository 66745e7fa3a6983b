// A matrix class in expressions, with moves and copies.
#include "autodiff.h"
#include <vector>

class Matrix {
    int n_;
    std::vector<double> data_;

public:
    explicit Matrix(int n) : n_(n), data_(n * n, 0.0) {}
    double &operator()(int i, int j) { return data_[i * n_ + j]; }
    double operator()(int i, int j) const { return data_[i * n_ + j]; }
    Matrix operator*(const Matrix &o) const {
        Matrix result(n_);
        for (int i = 0; i < n_; i++)
            for (int j = 0; j < n_; j++)
                for (int k = 0; k < n_; k++) result(i, j) += (*this)(i, k) * o(k, j);
        return result;
    }
    double trace() const {
        double sum = 0;
        for (int i = 0; i < n_; i++) sum += (*this)(i, i);
        return sum;
    }
};

double f(const double *x, int n) {
    Matrix m(n);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) m(i, j) = x[i * n + j];
    Matrix copy = m;
    return (m * m * copy).trace();
}

int main() {
    enum { N = 3 };
    double x[N * N], dx[N * N] = {};
    for (int i = 0; i < N * N; i++) x[i] = 0.3 * i - 1;
    __enzyme_autodiff((void *)f, x, dx, static_cast<int>(N));
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            double wanted = 0;  // 3 (A²)ᵀ
            for (int k = 0; k < N; k++) wanted += 3 * x[j * N + k] * x[k * N + i];
            SAME(dx[i * N + j], wanted);
        }
    return 0;
}
