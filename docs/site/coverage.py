"""Where each part of the course has its chapter, its example and its test. tests/test_course.py checks every line.

A line is: part | what | chapter#heading, whose section has code that runs | file::test, below tests/.
"""

from __future__ import annotations

from dataclasses import dataclass

LINES = """
Regression
R1 | least squares in one variable, closed form | least-squares#one-variable-by-hand | models/test_equivariance.py::test_a_polynomial_is_least_squares_in_its_powers
R2 | normal equations, pseudo-inverse, rank, all solutions | least-squares#normal-equations-and-what-to-do-when-they-are-singular | models/least_squares/test_rank.py::test_solutions_are_those_of_the_pseudo_inverse
R3 | basis functions, polynomials of any degree | least-squares#basis-functions | models/least_squares/test_nist.py::test_a_polynomial_basis_reports_the_certified_powers
R4 | gradient descent, mini-batch, one row at a time (LMS) | gradient-descent#the-way-down | models/test_chosen_solvers.py::test_one_epoch_of_lms_from_zero_is_the_rule_by_hand
R5 | Gaussian noise: likelihood, standard errors, intervals | least-squares#gaussian-noise-the-likelihood-standard-errors-p-values | models/least_squares/test_intervals.py::test_intervals_are_those_of_statsmodels
R6 | ridge, primal and dual | ridge#ridge-regression | models/least_squares/test_least_squares_solver.py::test_both_forms_of_ridge_are_the_same_solution
R7 | lasso and elastic net, whole path | lasso#lasso-and-elastic-net | models/lasso/test_lasso.py::test_a_path_is_its_single_fits_and_scikit_learns_path
R8 | Huber and robust regression | robust#robust-regression | models/huber/test_huber.py::test_the_fit_is_stationary_and_certified_at_rounding
R9 | locally weighted regression | local#one-query-by-hand | models/local/test_local.py::test_every_local_fit_is_weighted_least_squares
R10 | kernel LMS and its stable step | kernels#kernel-lms-gradient-steps-in-the-dual | models/kernel/test_kernel_models.py::test_a_step_that_is_not_stable_is_refused_with_the_largest_that_is
R11 | kernel ridge | kernels#kernel-ridge | models/kernel/test_kernel_ridge.py::test_coefficients_solve_the_equations
R12 | regression by trees, bagging, boosting, networks | ensembles#bagging-forests-and-adaboost | models/trees/test_ensemble_theory.py::test_boosting_lowers_bias
Classification and generalised linear models
C1 | logistic regression by every solver | logistic#solvers | models/glm/test_glm_problem.py::test_every_smooth_solver_ends_at_the_same_minimum
C2 | decision boundary, straight and bent, drawn | logistic#the-boundary-is-where-z--0 | evaluation/test_displays_boundary.py::test_through_a_basis_the_boundary_is_a_circle
C3 | each class against the rest | logistic#several-classes-each-against-the-rest | models/test_one_vs_rest.py::test_the_class_of_the_largest_score_is_predicted
C4 | softmax, its k - 1 parameter form | softmax#only-differences-matter | models/glm/test_softmax.py::test_without_a_penalty_the_classes_have_mean_0_and_odds_are_against_a_reference
C5 | the exponential family as objects | exponential-family#the-exponential-family | mathematics/test_exponential.py::test_a_density_is_its_definition
C6 | generalised linear models, one rule for canonical links | glm#one-rule-for-all-the-check | models/glm/test_course_scores.py::test_one_rule_learns_every_family_with_its_canonical_link
C7 | the perceptron with a threshold | perceptron#the-perceptron | models/perceptron/test_perceptron.py::test_the_rule_is_the_courses_from_any_start_in_any_order
C8 | Gaussian discriminant analysis, the Gaussian as an object | discriminants#gaussian-discriminant-analysis | models/test_course_classes.py::test_priors_means_and_covariances_are_those_of_the_formulas_divided_by_n
C9 | naive Bayes of words, smoothing, log space | naive-bayes#0--0-why-counts-are-smoothed | models/test_course_classes.py::test_ten_thousand_words_leave_no_posterior_at_zero_over_zero
C10 | hard margin, functional and geometric margins | svm#support-vector-machines | models/svm/test_hard_margin.py::test_the_margin_is_that_of_the_quadratic_programme
C11 | soft margin, the primal by single rows, slacks | svm#the-primal-by-single-rows | models/linear_svm/test_linear_svc.py::test_sgd_is_the_listing_and_its_intercept_the_best_for_the_mean
C12 | the dual, its conditions, SMO, kernels | svm#soft-margins-and-the-dual | models/svm/test_svc.py::test_the_multipliers_meet_their_conditions
C13 | decision trees; greedy, sensitive, unchanged by monotone maps | trees#greedy-is-not-optimal | models/trees/test_trees.py::test_every_split_is_the_best_of_its_node_and_every_leaf_has_none
C14 | bagging, out-of-bag error, forests | ensembles#bagging-out-of-bag-error | models/trees/test_ensemble_theory.py::test_bagging_lowers_variance_and_leaves_bias
C15 | AdaBoost, SAMME | ensembles#adaboost | models/trees/test_adaboost.py::test_every_stump_has_the_least_weighted_error
C16 | networks, back-propagation, states and costates | networks#two-worked-examples | models/network/test_network.py::test_the_core_has_the_gradient_of_its_value
Kernels
K1 | linear, polynomial, Gaussian, matrix kernels; rules that keep them | kernels#mercer-every-gram-matrix-without-negative-eigenvalues | mathematics/test_kernels.py::test_a_kernel_made_by_the_rules_is_proven_and_never_refuted
K2 | the explicit map, truncations of the Gaussian's | kernels#the-map-and-the-kernel | mathematics/test_kernels.py::test_truncations_of_the_gaussian_map_converge_to_it
K3 | a map for every Gram matrix | kernels#mercer-every-gram-matrix-without-negative-eigenvalues | mathematics/test_kernels.py::test_the_map_of_a_matrix_gives_the_kernel_back
Without targets
U1 | components by columns or rows | pca#more-columns-than-rows | models/pca/test_pca.py::test_columns_and_rows_by_choice_give_the_same_directions
U2 | scores, reconstruction, share of the variance | pca#how-many-directions | models/pca/test_pca.py::test_a_share_keeps_the_fewest_directions_that_explain_it
U3 | feature spaces, kernel PCA, whitening | pca#reconstruction-whitening-feature-spaces | models/kernel/test_kernel_models.py::test_kernel_pca_of_a_map_is_pca_of_its_features
Evaluation and selection
E1 | hold-out, folds, bootstrap | evaluation#folds-and-draws | evaluation/test_bounds.py::test_the_left_out_share_nears_one_over_e
E2 | confusion matrix, rates, ROC, calibration | evaluation#counting-errors | evaluation/test_confusion.py::test_rates_are_the_formulas_of_the_course
E3 | noise, bias and variance | bias-variance#the-identity-checked | evaluation/test_bias_variance.py::test_the_three_parts_add_up_to_the_expected_error
E4 | selection by folds, learning and validation curves | selection#curves | selection/test_curves.py::test_learning_curve_is_that_of_refits_on_the_same_rows
E5 | forward and backward selection | selection#features-forward-backward-filters | selection/test_wrappers.py::test_the_table_of_sums_is_the_table_of_refits
E6 | mutual information | selection#features-forward-backward-filters | selection/test_information_display.py::test_bars_are_the_scores_the_best_first
Optimisers
O1 | gradient descent to L-BFGS on any function | optimisers#optimisers-convexity-duality | minimise/test_smooth_solvers.py::test_the_known_minimum_is_found
O2 | Newton as a zero finder | optimisers#newtons-method-for-zeros | minimise/test_find_zero.py::test_digits_double_every_step
O3 | divergence and the largest stable step | gradient-descent#the-theorem-the-largest-stable-step | minimise/test_gradient_descent.py::test_a_step_above_two_over_the_largest_curvature_diverges_and_is_told_the_bound
O4 | constraints, multipliers, the KKT checker | optimisers#constraints-lagrange-karush-kuhn-tucker | minimise/test_check_kkt.py::test_a_solution_passes_with_its_multipliers
O5 | convexity refuted by two points | optimisers#convexity-can-be-refuted | minimise/test_convexity.py::test_the_two_points_refute_it
O6 | coordinate descent | lasso#the-theorem-a-dual-that-proves-it | models/test_chosen_solvers.py::test_a_sweep_by_hand
Theorems as checks
T1 | least squares: sub-optimality, rank, digits | least-squares#one-variable-by-hand | models/least_squares/test_least_squares_certificate.py::test_the_value_is_never_below_the_true_excess
T2 | convexity of the negative log-likelihood, not of squares through a sigmoid | logistic#convexity-why-this-loss | models/glm/test_course_scores.py::test_the_squared_cost_through_a_sigmoid_is_seen_not_to_be_convex_and_the_log_loss_is
T3 | weak and strong duality along the run | lasso#the-theorem-a-dual-that-proves-it | models/test_chosen_solvers.py::test_sweeps_show_primal_dual_and_gap_and_end_at_the_optimum
T4 | KKT for the support vector machine | svm#soft-margins-and-the-dual | models/svm/test_svc.py::test_the_multipliers_meet_their_conditions
T5 | no finite maximum on separable data | logistic#perfect-separation | models/glm/test_separation.py::test_the_direction_of_complete_separation_is_told_in_plain_numbers
T6 | perceptron: updates under the bound | perceptron#the-theorem | models/perceptron/test_perceptron.py::test_updates_never_exceed_the_bound_of_the_separator_found_or_of_any_other
T7 | margin bound | svm#a-bound-and-a-proof-that-there-is-no-margin | evaluation/test_bounds.py::test_hard_margin_is_its_formula_capped_at_one
T8 | ridge stability | ridge#a-theorem-stability | evaluation/test_bounds.py::test_ridge_keeps_the_promise_in_expectation
T9 | Mercer | kernels#mercer-every-gram-matrix-without-negative-eigenvalues | mathematics/test_kernels.py::test_a_users_function_is_refuted_by_a_vector_or_a_pair
T10 | PCA: orthonormal, projection error | pca#principal-components | models/pca/test_pca.py::test_the_mean_squared_projection_error_is_the_sum_of_the_dropped_eigenvalues
T11 | AdaBoost's bound | ensembles#adaboost | models/trees/test_adaboost.py::test_the_training_error_is_below_its_bound_in_every_round
T12 | back-propagation against differences | networks#neural-networks | models/network/test_network.py::test_a_certificate_refuses_a_wrong_gradient
T13 | exponential family: derivatives are moments | exponential-family#the-theorem-as-a-check-derivatives-of-a-are-moments | mathematics/test_exponential.py::test_moments_of_t_are_those_of_samples
T14 | matrix calculus | matrix-calculus#the-rules | test_matrix_calculus.py::test_a_rule_gives_the_gradient
T15 | push-through identity | matrix-calculus#the-push-through-identity | test_matrix_calculus.py::test_the_push_through_identity
T16 | approximation against width and depth | networks#approximation-more-units-smaller-error | models/trees/test_ensemble_theory.py::test_each_level_lowers_the_error_on_a_smooth_function
T17 | held-out risk with an exact interval | risk#held-out-risk-is-a-number-with-an-interval | evaluation/test_bounds.py::test_held_out_is_clopper_pearson
Worked examples
W1 | boundaries x1 + x2 = 3 and the unit circle | logistic#the-boundary-is-where-z--0 | models/glm/test_course_scores.py::test_the_boundary_of_minus_three_one_one_is_the_line_on_which_the_columns_sum_to_three
W2 | one outlier moves least squares, not logistic regression | logistic#the-outlier-experiment | models/glm/test_course_scores.py::test_one_far_outlier_moves_the_boundary_of_least_squares_and_not_of_logistic_regression
W3 | PCA of four points | pca#the-worked-example | models/test_course_classes.py::test_of_four_points_on_two_lines_the_eigenvalues_are_1_and_epsilon_squared
W4 | the chain v w1 w0 x | networks#two-worked-examples | models/network/test_network.py::test_the_chain_of_three_weights_has_the_gradients_of_the_notes
W5 | a 2-2-3-1 network by hand | networks#two-worked-examples | models/network/test_network.py::test_a_2_2_3_1_network_of_relu_by_hand
W6 | the gradient of f(A) | matrix-calculus#a-worked-example | test_matrix_calculus.py::test_the_worked_example_of_a_gradient_by_a_matrix
W7 | (x'z)^2 is the product of n^2 products | kernels#the-map-and-the-kernel | mathematics/test_kernels.py::test_maps_of_the_notes_are_their_kernels
W8 | the Bernoulli distribution | exponential-family#the-exponential-family | mathematics/test_exponential.py::test_the_bernoulli_is_the_worked_example
W9 | the perceptron on 0.1 and 0.05 | perceptron#the-theorem | models/perceptron/test_perceptron.py::test_two_near_points_take_hundreds_of_updates_under_the_augmented_bound_far_over_that_of_the_margin
"""  # noqa: E501


@dataclass(frozen=True)
class Part:
    """A part of the course: its number, what it is, where it is taught, and what tests it."""

    group: str
    number: str
    what: str
    chapter: str
    heading: str
    test_file: str
    test: str


def parts() -> list[Part]:
    """All lines."""
    group, rows = "", []
    for line in LINES.strip().splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 1:
            group = line
            continue
        number, what, place, test = cells
        rows.append(Part(group, number, what, *place.split("#"), *test.split("::")))
    return rows


def page() -> str:
    """The table as a page."""
    lines = [
        "# Every part of the course: chapter, example, test",
        "",
        "Made from `docs/site/coverage.py` and checked by `tests/test_course.py`: every section named here has code",
        "that runs, and every test is there.",
        "",
    ]
    group = ""
    for part in parts():
        if part.group != group:
            group = part.group
            lines += ["", f"## {group}", "", "| | what | chapter and example | test |", "|---|---|---|---|"]
        place = f"[{part.chapter}](course/{part.chapter}.md#{part.heading})"
        lines.append(
            f"| {part.number} | {part.what} | {place} | `{part.test_file}`: {part.test.replace('_', ' ')[5:]} |"
        )
    return "\n".join([*lines, ""])
