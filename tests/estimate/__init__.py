"""Tests of the estimators, against enumeration, closed forms, scipy.stats and statsmodels."""
