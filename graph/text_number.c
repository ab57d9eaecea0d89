/* text_number.c - numbers to text and back. */
#include "text_number.h"
#include "interp/interp.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A double written out in full has at most 767 significant digits. */
enum { LONGEST = 1100 };

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

static const char *decimal_point(void) {
  const struct lconv *conventions = localeconv();
  return conventions && *conventions->decimal_point ? conventions->decimal_point : ".";
}

/* Replaces the first `from` in text by `to`; there is room. */
static void replace(char *text, const char *from, const char *to) {
  char *at = strcmp(from, to) == 0 ? NULL : strstr(text, from);
  if (!at) return;
  memmove(at + strlen(to), at + strlen(from), strlen(at + strlen(from)) + 1);
  memcpy(at, to, strlen(to));
}

/* 1e+07 to 1e7, 1e-05 to 1e-5. */
static void shorten_exponent(char *text) {
  char *e = strchr(text, 'e');
  if (!e) return;
  char *digit = e + 1, *to = e + 1;
  if (*digit == '-') *to++ = '-';
  if (*digit == '-' || *digit == '+') digit++;
  while (*digit == '0' && digit[1]) digit++;
  memmove(to, digit, strlen(digit) + 1);
}

void bb_put_number(bb_buffer *out, double value, bb_dtype dtype) {
  if (isnan(value) || isinf(value)) {
    bb_put(out, "%s", isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
    return;
  }
  if (value == trunc(value) && fabs(value) < 1e15) {
    if (value == 0 && signbit(value)) bb_put(out, "-");
    bb_put_integer(out, (int64_t)value);
    return;
  }
  /* A decimal of 6 (15) digits survives a normal float (double), so %g itself finds fewer. */
  int digits = dtype == BB_F64 ? 15 : dtype == BB_F32 ? 6 : 1;
  if (fabs(value) < (dtype == BB_F64 ? DBL_MIN : FLT_MIN)) digits = 1;
  char text[64];
  for (;; digits++) {
    snprintf(text, sizeof text, "%.*g", digits, value);
    if (bb_round_to(dtype, strtod(text, NULL)) == value || digits >= 17) break;
  }
  replace(text, decimal_point(), ".");
  shorten_exponent(text);
  bb_put(out, "%s", text);
}

const char *bb_scan_number(const char **text, const char *end, double *value, bool *integer) {
  const char *at = *text;
  *integer = true;
  if (at == end || !is_digit(*at)) return "expected a number";
  while (at < end && is_digit(*at)) at++;
  if (at < end && *at == '.') {
    *integer = false;
    at++;
    while (at < end && is_digit(*at)) at++;
  }
  if (at < end && (*at == 'e' || *at == 'E')) {
    const char *digit = at + 1;
    if (digit < end && (*digit == '+' || *digit == '-')) digit++;
    if (digit == end || !is_digit(*digit)) return "an exponent without digits";
    *integer = false;
    for (at = digit; at < end && is_digit(*at);) at++;
  }
  size_t length = (size_t)(at - *text);
  if (length > LONGEST) return "a number with too many digits";
  char copy[LONGEST + 16];
  memcpy(copy, *text, length);
  copy[length] = '\0';
  replace(copy, ".", decimal_point());
  *value = strtod(copy, NULL);
  if (isinf(*value)) return "a number too large";
  *text = at;
  return NULL;
}
