// Methods that are found through the object's table.
#include "autodiff.h"

struct Shape {
    double scale;
    explicit Shape(double s) : scale(s) {}
    virtual ~Shape() {}
    virtual double area() const = 0;
    virtual double weight(double density) const { return area() * density * scale; }
};
struct Square : Shape {
    double side;
    Square(double s, double side) : Shape(s), side(side) {}
    double area() const override { return side * side; }
};
struct Circle : Shape {
    double radius;
    Circle(double s, double r) : Shape(s), radius(r) {}
    double area() const override { return M_PI * radius * radius; }
    double weight(double density) const override { return 0.5 * density * area(); }
};

double f(double x, int kind) {
    Shape *shape = kind == 0 ? static_cast<Shape *>(new Square(2, x)) : new Circle(3, x);
    double weight = shape->weight(1.5) + shape->area();
    delete shape;
    return weight;
}

double total(const Shape *const *shapes, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += shapes[i]->weight(2);
    return sum;
}

int main() {
    SAME(__enzyme_autodiff((void *)f, 3.0, 0), (2 * 1.5 + 1) * 6);
    SAME(__enzyme_autodiff((void *)f, 3.0, 1), (0.75 + 1) * 2 * M_PI * 3);
    Square square(2, 3), dsquare(0, 0);
    Circle circle(1, 4), dcircle(0, 0);
    const Shape *shapes[2] = {&square, &circle}, *shadows[2] = {&dsquare, &dcircle};
    __enzyme_autodiff((void *)total, shapes, shadows, 2);
    SAME(dsquare.side, 2 * 2 * 2 * 3);
    SAME(dsquare.scale, 2 * 9);
    SAME(dcircle.radius, 2 * M_PI * 4);
    return 0;
}
