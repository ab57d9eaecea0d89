/* cpu_math.h - functions of numbers, as plain arithmetic that compilers make vector code of.  Part of cpu.h.
 */

/* e^(x - n ln 2), which is near 1, by a power of two. */
BB_INLINE float bb_exp_rest_f32(float x, float n, const float by) {
  float r = (x - n * 0.693145752f) - n * 1.42860677e-6f;
  float p = by * 0.0013814611f;
  p = p * r + by * 0.00836871004f;
  p = p * r + by * 0.0416683874f;
  p = p * r + by * 0.166665207f;
  p = p * r + by * 0.499999935f;
  p = p * r + by;
  p = p * r + by;
  return p;
}

/* e^x, within 1 ulp where multiply-adds are fused (2 elsewhere), below 2^-126 as near as numbers are there.
 * x = n ln 2 + r, a polynomial in r, and 2^n as two powers of half the exponent, which lie in the low bits of a sum that rounds to n + 254.  Beyond -104 all
 * is 0, beyond 89 infinite.  NaN stays NaN.  There is one comparison of floats, at the end: paths that a bound on
 * x divides are compiled apart before they become vectors, and joined by many instructions. */
BB_INLINE float bb_exp_f32(float x) {
  float sum = x * 1.44269504f + 12583166.0f;
  int32_t bits = (int32_t)bb_bits(sum), most = 0x4B400000 + 382;
  bits = bits < most ? bits : most;
  float n = bb_float((uint32_t)bits) - 12583166.0f;
  int32_t half = bits >> 1;
  float p = bb_exp_rest_f32(x, n, 1) * bb_float((uint32_t)half << 23) *
            bb_float((uint32_t)(bits - half) << 23);
  return x < -104.0f ? 0.0f : p;
}

/* e^x that is added to a number which is not so small, within 1 ulp where multiply-adds are fused: below e^-87 it is 0.  Twice the polynomial
 * by half of 2^n, which is one number up to n = 128; what is more is beyond 1.42 or infinite, and so is the product. */
BB_INLINE float bb_exp_beside_f32(float x) {
  int32_t bits = (int32_t)bb_bits(x * 1.44269504f + 12583038.0f), most = 0x4B400000 + 254;
  bits = bits < most ? bits : most;
  float n = bb_float((uint32_t)bits) - 12583038.0f;
  float p = bb_exp_rest_f32(x, n, 2) * bb_float((uint32_t)bits << 23);
  return x < -87.0f ? 0.0f : p;
}

/* e^x of what is at most 0, but for rounding, within 2 ulp where multiply-adds are fused (3 elsewhere): a power of two
 * is added to the exponent, and is 1 at most.  Below e^-87 all is 0.  Most of the time goes to multiply-adds: there are two fewer than in the others. */
BB_INLINE float bb_exp_below_f32(float x) {
  uint32_t bits = bb_bits(x * 1.44269504f + 12582912.0f), most = 0x4B400000;
  bits = bits < most ? bits : most; /* less than 0 and NaN are more, too */
  float n = bb_float(bits) - 12582912.0f;
  float r = (x - n * 0.693145752f) - n * 1.42860677e-6f;
  float p = 0.00829030667f;
  p = p * r + 0.0418979302f;
  p = p * r + 0.166676357f;
  p = p * r + 0.499991506f;
  p = p * r + 0.999999702f;
  p = p * r + 1.0f;
  p = bb_float(bb_bits(p) + (bits << 23));
  return x < -87.0f ? 0.0f : p;
}

/* --- exps of lanes side by side, 16 or a multiple of it --- */

#if BB_VECTOR_BYTES == 64
/* e^x, within 2 ulp.  x = n ln 2 + r, n a multiple of 1/32, whose fraction's power of two is looked up (half of it, h) and whose
 * whole part an instruction adds to the exponent that knows the least numbers; e^r is about 1 + r (r + 2) / 2.  Additions
 * and the table go to other units than multiply-adds, of which there are six.  Beyond -104 all is 0. */
BB_INLINE bb_wide bb_exp_wide(bb_wide x) {
  const bb_wide low = {0.5f,         0.510948574f, 0.522136891f, 0.5335702f,
                       0.545253866f, 0.557193371f, 0.569394317f, 0.581862429f,
                       0.594603558f, 0.60762368f,  0.620928906f, 0.634525479f,
                       0.648419777f, 0.662618322f, 0.677127773f, 0.691954941f};
  const bb_wide high = {0.707106781f, 0.722590403f, 0.738413073f, 0.754582214f,
                        0.771105413f, 0.787990423f, 0.805245166f, 0.822877739f,
                        0.840896415f, 0.859309649f, 0.87812608f,  0.897354538f,
                        0.917004043f, 0.937083817f, 0.957603281f, 0.978572062f};
  const bb_wide least = (bb_wide){0} - 104.0f;
  bb_wide sum = x * 1.44269504f + 393216.0f, power = sum;
  bb_wide n = sum - 393216.0f, r = (x - n * 0.693115234f) - n * 3.19461849e-05f;
  uint16_t within;
  __asm__("vpermi2ps %2, %1, %0" : "+v"(power) : "v"(low), "v"(high));
  __asm__("vcmpps $21, %2, %1, %0" : "=k"(within) : "v"(x), "v"(least)); /* at least, or NaN */
  bb_wide p = power * (r * (r + 2.00002932f)) + (power + power), made;
  __asm__("vscalefps %2, %1, %0%{%3%}%{z%}" : "=v"(made) : "v"(p), "v"(n), "Yk"(within));
  return made;
}
/* 2^(x by), within 2 ulp of that of the rounded product.  As above, with four multiply-adds and no rest of n: a multiple of 1/32 leaves
 * none.  2^r is about 1 + r (k + r l).  What is below -150 counts as that. */
BB_INLINE bb_wide bb_power_wide(bb_wide x, const float by) {
  const bb_wide low = {1,           1.02189715f, 1.04427378f, 1.06714040f, 1.09050773f, 1.11438674f,
                       1.13878863f, 1.16372486f, 1.18920712f, 1.21524736f, 1.24185781f, 1.26905096f,
                       1.29683955f, 1.32523664f, 1.35425555f, 1.38390988f};
  const bb_wide high = {1.41421356f, 1.44518081f, 1.47682615f, 1.50916443f,
                        1.54221083f, 1.57598085f, 1.61049033f, 1.64575548f,
                        1.68179283f, 1.7186193f,  1.75625216f, 1.79470908f,
                        1.83400809f, 1.87416763f, 1.91520656f, 1.95714412f};
  const bb_wide least = (bb_wide){0} - 150.0f;
  bb_wide y = x * by, made;
  __asm__("vmaxps %1, %2, %0" : "=v"(y) : "v"(y), "v"(least)); /* NaN stays */
  bb_wide sum = y + 393216.0f, power = sum, n = sum - 393216.0f, r = y - n;
  __asm__("vpermi2ps %2, %1, %0" : "+v"(power) : "v"(low), "v"(high));
  bb_wide p = power * (r * (r * 0.240226507f + 0.693157341f)) + power;
  __asm__("vscalefps %2, %1, %0" : "=v"(made) : "v"(p), "v"(n));
  return made;
}
#elif BB_VECTOR_BYTES == 32 && defined(__AVX2__) && defined(__FMA__)
/* e^x of what is at most 0, but for rounding, within 2 ulp.  As above, n being a multiple of 1/8: one register holds the powers of
 * two of its fraction, less what that fraction adds to their bits beside the whole part; e^r is about 1 + r + r^2 (1/2 + r/6).
 * Below e^-87 all is 0. */
BB_INLINE bb_wide bb_exp_wide(bb_wide x) {
  const bb_wide_bits power = {0x3f800000, 0x3f7b95c2, 0x3f7837f0, 0x3f75fed7,
                              0x3f7504f3, 0x3f75672a, 0x3f7744fd, 0x3f7ac0c7};
  const bb_wide_bits most = (bb_wide_bits){0} + 0x49c00000;
  const bb_wide least = (bb_wide){0} - 87.0f;
  bb_wide_bits bits = (bb_wide_bits)(x * 1.44269504f + 1572864.0f), made, within;
  __asm__("vpminud %2, %1, %0" : "=x"(bits) : "x"(bits), "x"(most)); /* NaN and less are more */
  bb_wide n = (bb_wide)bits - 1572864.0f;
  bb_wide r = (x - n * 0.693145752f) - n * 1.42860677e-6f;
  __asm__("vpermd %2, %1, %0" : "=x"(made) : "x"(bits), "x"(power));
  __asm__("vcmpps $21, %2, %1, %0" : "=x"(within) : "x"(x), "x"(least)); /* at least, or NaN */
  bb_wide whole = (bb_wide)(made + (bits << 20));
  bb_wide p = r * r * (r * 0.16666858f + 0.50006455f) + r;
  return (bb_wide)((bb_wide_bits)(p * whole + whole) & within);
}
/* 2^(x by) of what is at most 0, but for rounding, within 2 ulp of that of the rounded product.  Below 2^-125 all is 0. */
BB_INLINE bb_wide bb_power_wide(bb_wide x, const float by) {
  const bb_wide_bits power = {0x3f800000, 0x3f7b95c2, 0x3f7837f0, 0x3f75fed7,
                              0x3f7504f3, 0x3f75672a, 0x3f7744fd, 0x3f7ac0c7};
  const bb_wide_bits most = (bb_wide_bits){0} + 0x49c00000;
  const bb_wide least = (bb_wide){0} - 125.0f;
  bb_wide y = x * by;
  __asm__("" : "+x"(y)); /* a sum with the product would take another multiply-add */
  bb_wide_bits bits = (bb_wide_bits)(y + 1572864.0f), made, within;
  __asm__("vpminud %2, %1, %0" : "=x"(bits) : "x"(bits), "x"(most)); /* NaN and less are more */
  bb_wide n = (bb_wide)bits - 1572864.0f, r = y - n;
  __asm__("vpermd %2, %1, %0" : "=x"(made) : "x"(bits), "x"(power));
  __asm__("vcmpps $21, %2, %1, %0" : "=x"(within) : "x"(y), "x"(least)); /* at least, or NaN */
  bb_wide whole = (bb_wide)(made + (bits << 20));
  bb_wide p = r * (r * (r * 0.0555041087f + 0.240257639f) + 0.693147181f);
  return (bb_wide)((bb_wide_bits)(p * whole + whole) & within);
}
#endif
#define BB_EXPS(name, one)                                                                         \
  BB_INLINE void bb_exps##name(float *x, const int64_t lanes) {                                    \
    BB_VECTOR                                                                                      \
    for (int64_t l = 0; l < lanes; l++) x[l] = one(x[l]);                                          \
  }
#define BB_WIDE_EXPS(name)                                                                         \
  BB_INLINE void bb_exps##name(float *x, const int64_t lanes) {                                    \
    BB_STRAIGHT                                                                                    \
    for (int64_t l = 0; l < lanes; l += BB_WIDE_LANES) {                                           \
      bb_wide_loose *at = (bb_wide_loose *)(x + l);                                                \
      *at = bb_exp_wide(*at);                                                                      \
    }                                                                                              \
  }
/* 2^(x by), in place; where vectors have 32 bytes, of what is at most 0. */
#if BB_VECTOR_BYTES == 64 || (BB_VECTOR_BYTES == 32 && defined(__AVX2__) && defined(__FMA__))
BB_INLINE void bb_powers_below_f32(float *x, const float by, const int64_t lanes) {
  BB_STRAIGHT
  for (int64_t l = 0; l < lanes; l += BB_WIDE_LANES) {
    bb_wide_loose *at = (bb_wide_loose *)(x + l);
    *at = bb_power_wide(*at, by);
  }
}
#else
BB_INLINE void bb_powers_below_f32(float *x, const float by, const int64_t lanes) {
  BB_VECTOR
  for (int64_t l = 0; l < lanes; l++) x[l] = bb_exp_below_f32(x[l] * (by * 0.693147181f));
}
#endif
#if BB_VECTOR_BYTES == 64
BB_WIDE_EXPS(_f32)
BB_WIDE_EXPS(_below_f32)
#elif BB_VECTOR_BYTES == 32 && defined(__AVX2__) && defined(__FMA__)
BB_EXPS(_f32, bb_exp_f32)
BB_WIDE_EXPS(_below_f32)
#else
BB_EXPS(_f32, bb_exp_f32)
BB_EXPS(_below_f32, bb_exp_below_f32)
#endif
#undef BB_EXPS
#undef BB_WIDE_EXPS

/* Within 2 ulp; never beyond 1; of -0 it is -0.  |x| = n ln 2 / 2 + r, so that with p = 2^n and t = tanh r, a polynomial, it is
 * ((p + 1) t + p - 1) / ((p - 1) t + p + 1), whose divisor is the dividend and 2 - 2 t: what rounding does to the dividend then
 * leaves a quotient near 1 alone.  n is 0 up to 3/4 ln 2 / 2, where the quotient is t, since p - 1 cancels with what is below 0: a sum
 * that rounds to halves of n is cut to whole ones.  Beyond 9.5 all is 1. */
BB_INLINE float bb_tanh_f32(float x) {
  const float size = fabsf(x), a = size > 9.5f ? 9.5f : size;
  const uint32_t bits = bb_bits(a * 2.88539008f + 6291583.0f) & 0xfffffffe;
  const float r = a - (bb_float(bits) - 6291583.0f) * 0.34657359f, z = r * r;
  const float power = bb_float(bits << 22);
  float p = -0.0512252748f;
  p = p * z + 0.133226886f;
  p = p * z + -0.333332151f;
  const float t = r + r * z * p, top = (power + 1.0f) * t + (power - 1.0f);
  return bb_float(bb_bits(top / (top + (2.0f - 2.0f * t))) | (bb_bits(x) & 0x80000000));
}

/* Within 2 ulp; of -0 it is -0.  From 0.875 on it is 1 - 2^q, q being a polynomial in |x| that is the better the less is left of 1; a
 * power of two is as in exp. */
BB_INLINE float bb_erf_f32(float x) {
  float a = fabsf(x), z = x * x;
  float p = -0.000603881897f;
  p = p * z + 0.00500202179f;
  p = p * z + -0.0267722793f;
  p = p * z + 0.112819627f;
  p = p * z + -0.376125067f;
  p = p * z + 0.128379151f;
  float small = x + x * p;
  float q = 0.000288409472f;
  q = q * a + -0.00444647158f;
  q = q * a + 0.0322892554f;
  q = q * a + -0.150401592f;
  q = q * a + -0.918737769f;
  q = q * a + -1.62720048f;
  q = q * a + -0.000208050638f;
  float sum = q + 12583039.0f, r = q - (sum - 12583039.0f);
  float e = 0.00132695551f;
  e = e * r + 0.0096712932f;
  e = e * r + 0.0555071086f;
  e = e * r + 0.240222469f;
  e = e * r + 0.693147004f;
  e = e * r + 1.0f;
  float large = 1.0f - e * bb_float(bb_bits(sum) << 23);
  large = a > 3.9375f ? 1.0f : large;
  large = bb_float(bb_bits(large) | (bb_bits(x) & 0x80000000));
  return a < 0.875f ? small : large;
}

/* Within 1 ulp where multiply-adds are fused (2 elsewhere).  x = 2^n (1 + f), f between -0.293 and 0.415, and a polynomial in f; what is
 * below 2^-126 is made larger first.  0 gives -inf, what is less NaN. */
BB_INLINE float bb_log_f32(float x) {
  uint32_t own = bb_bits(x);
  int32_t least = own < 0x00800000 ? 24 : 0;
  float y = own < 0x00800000 ? x * 0x1p24f : x;
  int32_t bits = (int32_t)(bb_bits(y) - 0x3f3504f3);
  float n = (float)((bits >> 23) - least);
  float f = bb_float((uint32_t)(bits & 0x007fffff) + 0x3f3504f3) - 1.0f, z = f * f;
  float p = 0.0703768363f;
  p = p * f + -0.115146103f;
  p = p * f + 0.116769987f;
  p = p * f + -0.124201408f;
  p = p * f + 0.142493228f;
  p = p * f + -0.166680577f;
  p = p * f + 0.200007148f;
  p = p * f + -0.249999940f;
  p = p * f + 0.333333312f;
  float small = f * (z * p) + n * -2.12194440e-4f;
  float log = (f + (small - 0.5f * z)) + n * 0.693359375f;
  float other = x < 0.0f ? NAN : x == 0.0f ? -INFINITY : x;
  return own - 1 < 0x7f7fffff ? log : other;
}

/* x / pi less the nearest whole number, or the nearest half one (shift: 0.5), times pi, with the sign of (-1)^that number.  1 / pi is two
 * doubles; a product of a float with the first is two as well, as rounded and the rest.  From 2^45 on they are those of 2^21 / pi less an
 * even number, of which x / 2^21 is a whole multiple, and so on for each 21 powers more: what is left is within 2^-60, and no float is
 * nearer to a multiple of pi / 2 than 2^-30. */
BB_INLINE float bb_half_turn(float x, const double shift) {
  const float size = fabsf(x);
  double first = size < 0x1p45f ? 0x1.45f306dc9c883p-2 : 0x1.b727220a94fe1p-24;
  double second = size < 0x1p45f ? -0x1.6b01ec5417056p-56 : 0x1.d5f47d4d37703p-79;
  first = size < 0x1p66f ? first : 0x1.1054a7f09d5f4p-43;
  second = size < 0x1p66f ? second : 0x1.f534ddc0db629p-97;
  first = size < 0x1p87f ? first : 0x1.fc2757d1f534ep-65;
  second = size < 0x1p87f ? second : -0x1.1f924eb53361ep-120;
  first = size < 0x1p108f ? first : 0x1.7d1f534ddc0dbp-85;
  second = size < 0x1p108f ? second : 0x1.8a5664f10e41p-139;
  const double y = (double)x, turns = y * first;
#ifdef __FMA__
  const double rest = __builtin_fma(y, first, -turns);
#else
  uint64_t bits;
  double high;
  memcpy(&bits, &first, sizeof bits);
  bits &= ~(uint64_t)0x1fffffff;
  memcpy(&high, &bits, sizeof high);
  const double rest = (y * high - turns) + y * (first - high);
#endif
  const double sum = (turns + shift) + 0x1.8p52, whole = (sum - 0x1.8p52) - shift;
  double angle = (((turns - whole) + rest) + y * second) * 0x1.921fb54442d18p+1;
  uint64_t sign, made;
  memcpy(&sign, &sum, sizeof sign);
  memcpy(&made, &angle, sizeof made);
  made ^= sign << 63;
  memcpy(&angle, &made, sizeof angle);
  return (float)angle;
}

/* Between -1.58 and 1.58; never beyond 1, of which others take roots and angles. */
BB_INLINE float bb_sin_small_f32(float x) {
  float z = x * x;
  float p = -2.55025938e-08f;
  p = p * z + 2.76270498e-06f;
  p = p * z + -0.000198430935f;
  p = p * z + 0.00833335053f;
  p = p * z + -0.166666672f;
  float y = x + x * (z * p);
  y = 1.0f < y ? 1.0f : y;
  return -1.0f > y ? -1.0f : y;
}

/* Within 2 ulp, of any angle; of -0 it is -0, of infinite ones NaN. */
BB_INLINE float bb_sin_f32(float x) {
  float y = bb_sin_small_f32(bb_half_turn(x, 0));
  return x == 0.0f ? x : y;
}
BB_INLINE float bb_cos_f32(float x) {
  return bb_sin_small_f32(bb_half_turn(x, 0.5));
}

#define BB_MATH(name)                                                                              \
  BB_INLINE float bb_##name##_f32(float x) {                                                       \
    return name##f(x);                                                                             \
  }
BB_MATH(atan)
BB_MATH(sqrt)
BB_MATH(floor)
BB_MATH(ceil)
BB_MATH(rint)
BB_MATH(fabs)
#undef BB_MATH
#define BB_MATH(name)                                                                              \
  BB_INLINE double bb_##name##_f64(double x) {                                                     \
    return name(x);                                                                                \
  }
BB_MATH(exp)
BB_INLINE double bb_exp_below_f64(double x) {
  return exp(x);
}
BB_MATH(tanh)
BB_MATH(erf)
BB_MATH(log)
BB_MATH(sin)
BB_MATH(atan)
BB_MATH(cos)
BB_MATH(sqrt)
BB_MATH(floor)
BB_MATH(ceil)
BB_MATH(rint)
BB_MATH(fabs)
#undef BB_MATH
