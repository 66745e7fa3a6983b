// C++: new and delete, templates, lambdas, virtual functions, vectors of the standard library, clean-ups.
#include "forward.h"
#include <functional>
#include <memory>
#include <vector>

template <typename T> T cubed(T x) { return x * x * x; }

struct Shape {
    virtual ~Shape() = default;
    virtual double area() const = 0;
};
struct Square final : Shape {
    double side;
    explicit Square(double s) : side(s) {}
    double area() const override { return side * side; }
};
struct Disc final : Shape {
    double radius;
    explicit Disc(double r) : radius(r) {}
    double area() const override { return 3 * radius * radius; }
};

double areas(double x, int kind) {
    Shape *shape = kind ? static_cast<Shape *>(new Square(x)) : new Disc(x);
    double result = shape->area();
    delete shape;
    return result;
}
double of_vector(const double *x, int n) {
    std::vector<double> values;
    for (int i = 0; i < n; i++) values.push_back(x[i] * x[i]);
    double product = 1;
    for (double value : values) product *= value;
    return product;
}
double with_lambda(double x, double y) {
    auto scaled = [&](double t) { return t * y + x; };
    return scaled(scaled(2));
}
double owned(double x) {
    std::unique_ptr<double[]> memory(new double[3]);
    for (int i = 0; i < 3; i++) memory[i] = cubed(x) * i;
    return memory[1] + memory[2];
}

int main() {
    SAME(__enzyme_fwddiff((void *)areas, 2.0, 1.0, 1), 4);
    SAME(__enzyme_fwddiff((void *)areas, 2.0, 1.0, 0), 12);
    double x[3] = {1, 2, 3}, dx[3] = {1, 1, 0};
    SAME(__enzyme_fwddiff((void *)of_vector, x, dx, 3), 2 * 36 + 36);
    SAME(__enzyme_fwddiff((void *)with_lambda, 1.0, 1.0, 3.0, 0.5), 3 + 1 + 0.5 * (2 * 3 * 2 + 1));
    SAME(__enzyme_fwddiff((void *)owned, 1.5, 1.0), 9 * 1.5 * 1.5);
    SAME(__enzyme_fwddiff((void *)&cubed<double>, 1.5, 1.0), 3 * 1.5 * 1.5);
    return 0;
}
