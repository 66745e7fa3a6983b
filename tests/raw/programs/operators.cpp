// A class with operators: numbers in structures that are passed by value.
#include "autodiff.h"

struct Quaternion {
    double w, x, y, z;
    Quaternion operator*(const Quaternion &o) const {
        return {w * o.w - x * o.x - y * o.y - z * o.z, w * o.x + x * o.w + y * o.z - z * o.y,
                w * o.y - x * o.z + y * o.w + z * o.x, w * o.z + x * o.y - y * o.x + z * o.w};
    }
    Quaternion &operator+=(const Quaternion &o) {
        w += o.w, x += o.x, y += o.y, z += o.z;
        return *this;
    }
    double norm2() const { return w * w + x * x + y * y + z * z; }
};

double f(const double *q) {
    Quaternion a{q[0], q[1], q[2], q[3]}, b{1, 2, 3, 4};
    Quaternion c = a * b * a;
    c += b;
    return c.norm2();
}

int main() {
    double q[4] = {0.5, -1, 0.25, 2}, dq[4] = {}, h = 1e-6;
    __enzyme_autodiff((void *)f, q, dq);
    for (int i = 0; i < 4; i++) {
        double old = q[i];
        q[i] = old + h;
        double up = f(q);
        q[i] = old - h;
        double down = f(q);
        q[i] = old;
        NEAR(dq[i], (up - down) / (2 * h), 1e-6);
    }
    return 0;
}
