// What every case begins with: enzyme_call's compiler has no headers of the C library.
extern "C" {
double cos(double);
double erf(double);
double exp(double);
double fabs(double);
double lgamma(double);
double log(double);
double sin(double);
double sqrt(double);
double tanh(double);
void *calloc(std::size_t, std::size_t);
void *malloc(std::size_t);
void free(void *);
}

extern int enzyme_const, enzyme_dup;
extern "C" void __enzyme_autodiff(void *, ...);

const double PI = 3.14159265358979323846;

static double *doubles(long n) { return (double *)malloc(n * sizeof(double)); }
static double *zeros(long n) { return (double *)calloc(n, sizeof(double)); }
static double square(double x) { return x * x; }
