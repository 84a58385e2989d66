# Figures of R's glm() and lm() for test_glm_r_figures.py: every family, plain, with an offset, without an intercept,
# with repeated rows and with weights.
#
#   cd tests/models/glm/r_figures && Rscript figures.R     writes rows.csv and figures.json
#
# Needs MASS (negative binomial), statmod (Tweedie) and jsonlite. Made with R 4.2.2, MASS 7.3-58.2, statmod 1.5.0.

library(jsonlite)
library(MASS)
library(statmod)

set.seed(14)
n <- 60
rows <- data.frame(x0 = round(rnorm(n), 3), x1 = round(runif(n, -1, 1), 3))
score <- 0.4 + 0.5 * rows$x0 - 0.6 * rows$x1
chance <- 1 / (1 + exp(-score))
mean <- exp(score)
rows$offset <- round(0.1 * rnorm(n), 3)
rows$count <- sample(1:3, n, replace = TRUE)           # how often a row is repeated
rows$weight <- round(runif(n, 0.2, 3), 2)              # a weight that is no count
rows$trials <- sample(1:8, n, replace = TRUE)
rows$gaussian <- round(score + rnorm(n), 3)
rows$powers <- round(mean + 3 + 0.3 * rnorm(n), 3)     # positive, for the Gaussian family with the log link
rows$bernoulli <- rbinom(n, 1, chance)
rows$wins <- rbinom(n, rows$trials, chance)
rows$poisson <- rpois(n, mean)
rows$larger <- rpois(n, 9 + score)                     # counts for links other than log
rows$amount <- round(rgamma(n, 3, scale = mean / 3), 4) + 0.001
rows$steady <- round(rgamma(n, 40, scale = (4 + score) / 40), 4)
rows$claims <- round(sapply(rpois(n, mean), function(k) sum(rgamma(k, 1))), 4)
rows$spread <- rpois(n, mean * rgamma(n, 1 / 0.7, scale = 0.7))
write.csv(rows, "rows.csv", row.names = FALSE, quote = FALSE)
rows <- read.csv("rows.csv")                           # the numbers that the test reads
rows$share <- rows$wins / rows$trials

strict <- glm.control(epsilon = 1e-15, maxit = 1000)

# our family, our link, target, R's family, dispersion (NULL: what summary() takes)
families <- list(
  list("gaussian", "identity", "gaussian", gaussian(), NULL),
  list("gaussian", "log", "powers", gaussian("log"), NULL),
  list("bernoulli", "logit", "bernoulli", binomial(), NULL),
  list("bernoulli", "probit", "bernoulli", binomial("probit"), NULL),
  list("bernoulli", "cloglog", "bernoulli", binomial("cloglog"), NULL),
  list("binomial", "logit", "share", binomial(), NULL),
  list("poisson", "log", "poisson", poisson(), NULL),
  list("poisson", "sqrt", "larger", poisson("sqrt"), NULL),
  list("poisson", "identity", "larger", poisson("identity"), NULL),
  list("gamma", "log", "amount", Gamma("log"), NULL),
  list("gamma", "inverse", "steady", Gamma("inverse"), NULL),
  list("gamma", "identity", "steady", Gamma("identity"), NULL),
  list("exponential", "log", "amount", Gamma("log"), 1),
  list("inverse-gaussian", "log", "amount", inverse.gaussian("log"), NULL),
  list("inverse-gaussian", "inverse-squared", "steady", inverse.gaussian(), NULL),
  list("tweedie", "log", "claims", tweedie(var.power = 1.5, link.power = 0), NULL),
  list("negative-binomial", "log", "spread", negative.binomial(theta = 1), 1),
  list("quasi-bernoulli", "logit", "bernoulli", quasibinomial(), NULL),
  list("quasi-poisson", "log", "poisson", quasipoisson(), NULL)
)

figures <- function(fit, dispersion) {
  table <- summary(fit, dispersion = dispersion)
  is_exponential <- !is.null(dispersion) && family(fit)$family == "Gamma"
  likelihood <- as.numeric(logLik(fit))
  # Without a likelihood of its own: the exponential law is the Gamma law of dispersion 1
  if (is_exponential) likelihood <- sum(fit$prior.weights * dexp(fit$y, 1 / fitted(fit), log = TRUE))
  count <- if (is_exponential) fit$rank else attr(logLik(fit), "df")
  list(
    coefficients = as.numeric(coef(fit)),
    standard_errors = as.numeric(table$coefficients[, 2]),
    statistics = as.numeric(table$coefficients[, 3]),
    p_values = as.numeric(table$coefficients[, 4]),
    law = if (grepl("t value", colnames(table$coefficients)[3])) "t" else "z",
    deviance = fit$deviance,
    null_deviance = fit$null.deviance,
    df_residual = fit$df.residual,
    df_null = fit$df.null,
    pearson = sum(residuals(fit, "pearson")^2),
    dispersion = table$dispersion,
    log_likelihood = likelihood,
    aic = if (is_exponential) 2 * count - 2 * likelihood else AIC(fit),
    bic = if (is_exponential) count * log(nobs(fit)) - 2 * likelihood else BIC(fit)
  )
}

fitted_glm <- function(case, how) {
  used <- if (how == "repeated") rows[rep(seq_len(n), rows$count), ] else rows
  used$y <- used[[case[[3]]]]
  used$w <- rep(1, nrow(used))
  if (case[[3]] == "share") used$w <- used$trials
  if (how == "weights") used$w <- used$w * used$weight
  if (how == "counts") used$w <- used$w * used$count
  used$o <- if (how == "offset") used$offset else 0
  formula <- if (how == "no intercept") y ~ 0 + x0 + x1 + offset(o) else y ~ x0 + x1 + offset(o)
  starts <- c(if (how != "no intercept") case[[4]]$linkfun(mean(used$y)), 0, 0)
  suppressWarnings(glm(formula, case[[4]], used, weights = w, start = starts, control = strict))
}

# An offset, or no intercept, where every score has a legal mean and the likelihood one maximum; the weights of the
# binomial family are trials, so repeated rows are another table
ways_of <- function(case) {
  takes_any_score <- case[[2]] %in% c("logit", "probit", "cloglog", "log") && case[[1]] != "gaussian"
  is_free <- takes_any_score || (case[[1]] == "gaussian" && case[[2]] == "identity")
  c("plain", if (is_free) c("offset", "no intercept"), if (case[[1]] != "binomial") "repeated", "counts", "weights")
}

out <- list()
for (case in families) for (how in ways_of(case)) {
  fit <- fitted_glm(case, how)
  stopifnot(fit$converged)
  facts <- list(family = case[[1]], link = case[[2]], target = case[[3]], rows = how)
  out[[length(out) + 1]] <- c(facts, figures(fit, case[[5]]))
}

for (how in c("plain", "repeated", "weights")) {
  used <- if (how == "repeated") rows[rep(seq_len(n), rows$count), ] else rows
  used$w <- if (how == "weights") used$weight else 1
  fit <- lm(gaussian ~ x0 + x1, used, weights = w)
  table <- summary(fit)
  out[[length(out) + 1]] <- list(
    family = "lm", link = "identity", target = "gaussian", rows = how, coefficients = as.numeric(coef(fit)),
    standard_errors = as.numeric(table$coefficients[, 2]), p_values = as.numeric(table$coefficients[, 4]),
    sigma = table$sigma, r_squared = table$r.squared, f_statistic = as.numeric(table$fstatistic[1]),
    log_likelihood = as.numeric(logLik(fit)), aic = AIC(fit), bic = BIC(fit)
  )
}

lines <- sapply(out, function(case) toJSON(case, digits = I(15), auto_unbox = TRUE, na = "null"))
write(paste0("[\n", paste(lines, collapse = ",\n"), "\n]"), "figures.json")
