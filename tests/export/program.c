/* Calls what tests/export/functions.py exports; ends with 0 if all is as it should be, in C and in C++. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#define IGNORE_LEAKS(call) __lsan_disable(); call; __lsan_enable()
#else
#define IGNORE_LEAKS(call) call
#endif
#define CHECK(condition) do { if (!(condition)) { fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #condition, model_message()); exit(1); } } while (0)
#define NEAR(a, b) CHECK(fabs((a) - (b)) < 1e-12)

static double energy_of(const double *x, int64_t n, double k) {
  double total = 0;
  for (int64_t i = 0; i < n; i++) total += x[i] * x[i] * x[i] + (i ? 0.5 * k * (x[i] - x[i - 1]) * (x[i] - x[i - 1]) : 0);
  return total;
}

static void numbers_and_structs(void) {
  double z[2] = {1.0, 2.0};
  irad_t5_f64_c128_bool_i64_f32 r;
  CHECK(numbers(1.5, -3, true, (const irad_complex128 *)z, 0.5f, 250, &r) == MODEL_OK);
  double product[2];
  memcpy(product, &r.f1, sizeof product);
  CHECK(r.f0 == -1.5 && product[0] == 1.5 && product[1] == 3.0 && !r.f2 && r.f3 == 247 && r.f4 == 0.25f);

  double w[3] = {1, 2, 3};
  irad_Point_t3_f64_f64_f64_1d p = {1.0, 2.0, {w, {3}}};
  irad_t2_f64_f64 by = {10.0, 20.0};
  irad_t2_Point_t3_f64_f64_f64_1d_t2_i64_f64_1d m;
  CHECK(moved(&p, &by, &m) == MODEL_OK);
  CHECK(m.f0.x == 11.0 && m.f0.y == 22.0 && m.f0.weights.shape[0] == 3 && m.f0.weights.data[0] == 3.0);
  CHECK(m.f1.f0 == 3 && m.f1.f1.data[2] == 3.0 && w[0] == 1.0);
  model_free(m.f0.weights.data);
  free(m.f1.f1.data);

  double base[2] = {-1.0, 0.5}, exponent[2] = {0.5, 2.0}, power[2];
  CHECK(complex_power((const irad_complex128 *)base, (const irad_complex128 *)exponent, (irad_complex128 *)power) == MODEL_OK);
  double size = hypot(base[0], base[1]), angle = atan2(base[1], base[0]);
  double length = pow(size, 0.5) * exp(-2.0 * angle), phase = 0.5 * angle + 2.0 * log(size);
  NEAR(power[0], length * cos(phase));
  NEAR(power[1], length * sin(phase));
}

static void arrays(void) {
  double c[6] = {1, 2, 3, 4, 5, 6}, f[6] = {1, 4, 2, 5, 3, 6}, a[24], out[12], fixed[2] = {7, 8};
  for (int i = 0; i < 24; i++) a[i] = i;
  irad_f64_2d ac = {c, {2, 3}};
  irad_f64_2d_f af = {f, {2, 3}};
  irad_f64_2d_strided aa = {a, {2, 3}, {12 * sizeof(double), -(int64_t)sizeof(double)}};
  aa.data = a + 2;
  irad_const_f64_1d ax = {fixed, {2}};
  irad_f64_2d_strided ao = {out, {2, 3}, {6 * sizeof(double), 2 * sizeof(double)}};
  irad_t3_f64_f64_2d_f64_2d_f r;
  CHECK(layouts(&ac, &af, &aa, &ax, &ao, &r) == MODEL_OK);
  double total = 15;
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 3; j++) {
      double aij = a[2 + 12 * i - j];
      total += c[3 * i + j] * c[3 * i + j] * aij;
      CHECK(out[6 * i + 2 * j] == c[3 * i + j] - aij);
      CHECK(r.f1.data[2 * j + i] == aij && r.f2.data[2 * j + i] == f[2 * j + i]);
    }
  CHECK(r.f0 == total && r.f1.shape[0] == 3 && r.f1.shape[1] == 2 && r.f2.shape[0] == 2);
  free(r.f1.data);
  free(r.f2.data);

  irad_f64_1d line = {out, {12}}, none = {NULL, {0}};
  CHECK(fill(&line, 3.5) == MODEL_OK && out[0] == 3.5 && out[11] == 3.5);
  CHECK(fill(&none, 1.0) == MODEL_OK);

  irad_f64_2d_strided grid = {c, {3, 2}, {sizeof(double), 3 * sizeof(double)}};
  irad_f64_1d flat;
  CHECK(reshaped(&grid, &flat) == MODEL_OK && flat.shape[0] == 2);
  CHECK(flat.data[0] == 2 && flat.data[1] == 5);
  free(flat.data);

}

static void derivatives(void) {
  double x[4] = {0.5, -1.0, 2.0, 0.25}, v[4] = {1, 0, -1, 2}, k = 3.0, h = 1e-5;
  irad_f64_1d ax = {x, {4}}, av = {v, {4}}, g, hv;
  double value;
  CHECK(energy(&ax, k, &value) == MODEL_OK);
  NEAR(value, energy_of(x, 4, k));
  CHECK(force(&ax, k, &g) == MODEL_OK && g.shape[0] == 4);
  irad_t2_f64_f64_1d both;
  CHECK(energy_and_force(&ax, k, &both) == MODEL_OK);
  NEAR(both.f0, value);
  double into[4] = {9, 9, 9, 9};
  irad_f64_1d ai = {into, {4}};
  CHECK(energy_into(&ai, &ax, k, &value) == MODEL_OK);
  NEAR(value, both.f0);
  CHECK(curvature(&ax, &av, k, &hv) == MODEL_OK);
  irad_f64_2d hessian;
  CHECK(stiffness(&ax, k, &hessian) == MODEL_OK && hessian.shape[0] == 4 && hessian.shape[1] == 4);
  for (int i = 0; i < 4; i++) {
    double up[4], down[4], product = 0;
    memcpy(up, x, sizeof x), memcpy(down, x, sizeof x);
    up[i] += h, down[i] -= h;
    CHECK(fabs(g.data[i] - (energy_of(up, 4, k) - energy_of(down, 4, k)) / (2 * h)) < 1e-8);
    NEAR(g.data[i], both.f1.data[i]);
    NEAR(g.data[i], into[i]);
    for (int j = 0; j < 4; j++) product += hessian.data[4 * i + j] * v[j];
    NEAR(product, hv.data[i]);
    NEAR(hessian.data[4 * i + i], 6 * x[i] + k * (i == 0 || i == 3 ? 1 : 2));
  }
  free(g.data), free(both.f1.data), free(hv.data), free(hessian.data);

  irad_f64_1d empty = {NULL, {0}}, nothing;
  CHECK(energy(&empty, k, &value) == MODEL_OK && value == 0.0);
  CHECK(force(&empty, k, &nothing) == MODEL_OK && nothing.shape[0] == 0);
  free(nothing.data);

  irad_f64_1d two = {x, {2}}, way = {v, {2}};
  irad_t2_f64_1d_f64_1d push;
  irad_t2_f64_1d_t1_f64_1d pull;
  irad_f64_2d jacobian;
  CHECK(rows(&two, &jacobian) == MODEL_OK && jacobian.shape[0] == 3 && jacobian.shape[1] == 2);
  CHECK(slope(&two, &way, &push) == MODEL_OK && push.f1.shape[0] == 3);
  double ct[3] = {1, 2, 3};
  irad_f64_1d act = {ct, {3}};
  CHECK(pulled(&two, &act, &pull) == MODEL_OK && pull.f1.f0.shape[0] == 2);
  NEAR(jacobian.data[0], x[1]);
  NEAR(jacobian.data[2], cos(x[0]));
  NEAR(jacobian.data[5], 3 * x[1] * x[1]);
  for (int i = 0; i < 3; i++) NEAR(push.f1.data[i], jacobian.data[2 * i] * v[0] + jacobian.data[2 * i + 1] * v[1]);
  for (int j = 0; j < 2; j++) NEAR(pull.f1.f0.data[j], jacobian.data[j] + 2 * jacobian.data[2 + j] + 3 * jacobian.data[4 + j]);
  free(push.f0.data), free(push.f1.data), free(pull.f0.data), free(pull.f1.f0.data), free(jacobian.data);
}

static void exceptions(void) {
  double x[3] = {1, 2, 3}, value;
  irad_f64_1d ax = {x, {3}}, g;
  CHECK(energy(&ax, -1.0, &value) == MODEL_VALUE_ERROR && strstr(model_message(), "k must not be negative"));
  CHECK(strstr(model_message(), "functions.py"));
  CHECK(energy(&ax, 1e9, &value) == MODEL_OVERFLOW_ERROR && strstr(model_message(), "k is too large"));
  CHECK(force(&ax, -1.0, &g) == MODEL_VALUE_ERROR && force(&ax, 1e9, &g) == MODEL_OVERFLOW_ERROR);
  CHECK(errors(0, &ax, &value) == MODEL_OK && value == 6.0);
  CHECK(errors(1, &ax, &value) == MODEL_INDEX_ERROR);
  CHECK(errors(2, &ax, &value) == MODEL_ZERO_DIVISION_ERROR);
  CHECK(errors(3, &ax, &value) == MODEL_KEY_ERROR && strstr(model_message(), "no such thing"));
  IGNORE_LEAKS(CHECK(errors(4, &ax, &value) == MODEL_LIN_ALG_ERROR)); /* Numba keeps what a function holds as it raises */
  double short_[1];
  irad_f64_1d misfit = {short_, {1}};
  CHECK(energy_into(&misfit, &ax, 1.0, &value) == MODEL_REFUSED && strlen(model_message()) > 20);
}

static void linear_algebra(void) {
  double a[9] = {2, 1, 0, -1, 3, 1, 0.5, 0, 1}, b[3] = {1, -2, 0.5}, value, up, down, h = 1e-5;
  irad_f64_2d aa = {a, {3, 3}};
  irad_f64_1d ab = {b, {3}};
  irad_t2_f64_2d_f64_1d slopes;
  CHECK(solved(&aa, &ab, &value) == MODEL_OK);
  CHECK(solved_slopes(&aa, &ab, &slopes) == MODEL_OK);
  for (int i = 0; i < 12; i++) {
    double *place = i < 9 ? a + i : b + i - 9, before = *place;
    *place = before + h;
    CHECK(solved(&aa, &ab, &up) == MODEL_OK);
    *place = before - h;
    CHECK(solved(&aa, &ab, &down) == MODEL_OK);
    *place = before;
    CHECK(fabs((up - down) / (2 * h) - (i < 9 ? slopes.f0.data[i] : slopes.f1.data[i - 9])) < 1e-8);
  }
  free(slopes.f0.data), free(slopes.f1.data);
}

static void *in_thread(void *given) {
  double x[500], k = *(double *)given;
  for (int i = 0; i < 500; i++) x[i] = sin(i * k);
  irad_f64_1d ax = {x, {500}}, g;
  for (int turn = 0; turn < 2000; turn++) {
    CHECK(force(&ax, k, &g) == MODEL_OK);
    for (int i = 0; i < 500; i += 83) {
      double exact = 3 * x[i] * x[i] + k * ((i ? x[i] - x[i - 1] : 0) - (i < 499 ? x[i + 1] - x[i] : 0));
      CHECK(fabs(g.data[i] - exact) < 1e-10);
    }
    free(g.data);
    double value;
    if (turn % 100 == 0) {
      CHECK(energy(&ax, k < 2 ? -1.0 : 1e9, &value) == (k < 2 ? MODEL_VALUE_ERROR : MODEL_OVERFLOW_ERROR));
      CHECK(strstr(model_message(), k < 2 ? "negative" : "large"));
    }
  }
  return NULL;
}

static void threads(void) {
  double k[2] = {1.0, 2.5};
  pthread_t running[2];
  for (int i = 0; i < 2; i++) CHECK(pthread_create(&running[i], NULL, in_thread, &k[i]) == 0);
  for (int i = 0; i < 2; i++) CHECK(pthread_join(running[i], NULL) == 0);
}

static void random_numbers(void) {
  irad_f64_1d first, again, other;
  CHECK(drawn(7, 5, &first) == MODEL_OK && drawn(7, 5, &again) == MODEL_OK && drawn(8, 5, &other) == MODEL_OK);
  CHECK(memcmp(first.data, again.data, 40) == 0 && memcmp(first.data, other.data, 40) != 0);
  for (int i = 0; i < 5; i++) printf("%a\n", first.data[i]);
  free(first.data), free(again.data), free(other.data);
}

int main(void) {
  numbers_and_structs();
  arrays();
  derivatives();
  exceptions();
  linear_algebra();
  threads();
  random_numbers();
  return 0;
}
