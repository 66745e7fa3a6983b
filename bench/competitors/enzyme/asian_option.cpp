static void loss(const double *market, const double *normals, double strike, double maturity, double *out) {
    const long paths = shape[1][0], steps = shape[1][1];
    double spot = market[0], rate = market[1], volatility = market[2], dt = maturity / steps, total = 0.0;
    for (long p = 0; p < paths; p++) {
        double value = spot, average = 0.0;
        for (long s = 0; s < steps; s++) {
            double z = normals[p * steps + s];
            value *= exp((rate - 0.5 * volatility * volatility) * dt + volatility * sqrt(dt) * z);
            average += value;
        }
        double payoff = average / steps - strike;
        if (payoff > 0.0) total += payoff;
    }
    *out = exp(-rate * maturity) * total / paths;
}
