static double normal_cdf(double x) { return 0.5 * (1.0 + erf(x / sqrt(2.0))); }

static double price(double spot, double strike, double maturity, double volatility, double rate) {
    double deviation = volatility * sqrt(maturity);
    double d1 = (log(spot / strike) + (rate + 0.5 * volatility * volatility) * maturity) / deviation;
    return spot * normal_cdf(d1) - strike * exp(-rate * maturity) * normal_cdf(d1 - deviation);
}

static void loss(const double *spots, const double *strikes, const double *maturities, const double *volatilities,
                 const double *rate, double *out) {
    double total = 0.0;
    for (long i = 0; i < shape[0][0]; i++)
        total += price(spots[i], strikes[i], maturities[i], volatilities[i], *rate);
    *out = total;
}
