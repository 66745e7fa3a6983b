/* What the programs here have in common: the declarations of irad's conventions, and checks that end the process. */
#pragma once
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif
extern int enzyme_const, enzyme_dup, enzyme_dupnoneed, enzyme_out;
double __enzyme_autodiff(void *, ...);
double __irad_autodiff(void *, ...);
float __irad_autodiff_float(void *, ...);
void __irad_autodiff_void(void *, ...);
#ifdef __cplusplus
}
#endif

#define NEAR(found, wanted, tolerance)                                                                          \
    do {                                                                                                        \
        double found_ = (found), wanted_ = (wanted);                                                            \
        if (!(fabs(found_ - wanted_) <= (tolerance) * (1.0 + fabs(wanted_)))) {                                 \
            fprintf(stderr, "%s:%d: %s is %.17g, not %.17g\n", __FILE__, __LINE__, #found, found_, wanted_);    \
            exit(1);                                                                                            \
        }                                                                                                       \
    } while (0)
#define SAME(found, wanted) NEAR(found, wanted, 1e-11)
