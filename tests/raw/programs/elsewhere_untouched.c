/* What is not differentiated may be anything: inline assembly, computed gotos, variable arguments, atomics. */
#include "autodiff.h"
#include <stdarg.h>
#include <stdatomic.h>

static long add_by_assembly(long a, long b) {
#ifdef __x86_64__
    __asm__("addq %1, %0" : "+r"(a) : "r"(b) : "cc");
    return a;
#else
    return a + b;
#endif
}

static int interpret(const int *code) {
    static void *const labels[] = {&&increment, &&twice, &&stop};
    int value = 1;
    goto *labels[*code++];
increment:
    value++;
    goto *labels[*code++];
twice:
    value *= 2;
    goto *labels[*code++];
stop:
    return value;
}

static double total(int n, ...) {
    va_list list;
    va_start(list, n);
    double sum = 0;
    for (int i = 0; i < n; i++) sum += va_arg(list, double);
    va_end(list);
    return sum;
}

double f(double x) { return x * x; }

int main(void) {
    static _Atomic long counter;
    int code[] = {0, 1, 1, 0, 2};
    atomic_fetch_add(&counter, add_by_assembly(2, 3));
    SAME(atomic_load(&counter), 5);
    SAME(interpret(code), 9);
    SAME(total(3, 1.0, 2.0, __enzyme_autodiff((void *)f, 4.0)), 11);
    return 0;
}
