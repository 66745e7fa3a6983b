/* What the programs of forward mode have in common. */
#pragma once
#include "../programs/autodiff.h"

#ifdef __cplusplus
extern "C" {
#endif
extern int enzyme_primal_return;
double __enzyme_fwddiff(void *, ...);
double __irad_fwddiff(void *, ...);
float __irad_fwddiff_float(void *, ...);
void __irad_fwddiff_void(void *, ...);
#ifdef __cplusplus
}
#endif
