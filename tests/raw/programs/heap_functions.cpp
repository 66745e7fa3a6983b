// Every way to get memory from C and C++ that has a rule.
#include "autodiff.h"
#include <new>

template <typename Get, typename Give>
static double through(double x, Get get, Give give) {
    double *memory = static_cast<double *>(get(4 * sizeof(double)));
    memory[1] = x * x;
    memory[2] = memory[1] * x;
    double result = memory[2];
    give(memory);
    return result;
}

double f(double x, int kind) {
    switch (kind) {
    case 0: return through(x, [](size_t n) { return malloc(n); }, [](void *p) { free(p); });
    case 1: return through(x, [](size_t n) { return calloc(n / 8, 8); }, [](void *p) { free(p); });
    case 2: return through(x, [](size_t n) { return aligned_alloc(32, n); }, [](void *p) { free(p); });
    case 3: return through(x, [](size_t n) { return realloc(nullptr, n); }, [](void *p) { free(p); });
    case 4: return through(x, [](size_t n) { return ::operator new(n); }, [](void *p) { ::operator delete(p); });
    case 5: return through(x, [](size_t n) { return ::operator new[](n); }, [](void *p) { ::operator delete[](p); });
    case 6:
        return through(
            x, [](size_t n) { return ::operator new(n, std::nothrow); },
            [](void *p) { ::operator delete(p, std::nothrow); });
    default: {
        double *items = static_cast<double *>(malloc(sizeof(double)));
        items[0] = x;
        items = static_cast<double *>(realloc(items, 3 * sizeof(double)));
        items[2] = items[0] * items[0];
        items = static_cast<double *>(realloc(items, 64 * sizeof(double)));
        double result = items[2] * items[0];
        free(items);
        return result;
    }
    }
}

int main() {
    for (int kind = 0; kind < 8; kind++) SAME(__enzyme_autodiff((void *)f, 1.5, kind), 3 * 1.5 * 1.5);
    return 0;
}
