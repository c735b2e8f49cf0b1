(** What the main theorems rest on: [.ci/proofs] compares the list with the axioms of the classical reals. *)
From DP Require Import Laws HazardLaw HazardRelease OutputBounds MeanLoss.

Print Assumptions within_of_outcomes.
Print Assumptions within_post.
Print Assumptions H_derivative.
Print Assumptions density_ratio_monotonic.
Print Assumptions density_ratio_general.
Print Assumptions hazard_is_law.
Print Assumptions hazard_private_monotonic.
Print Assumptions hazard_private_general.
Print Assumptions level_moves_by_one.
Print Assumptions level_one_directed.
Print Assumptions runs_level_is_level.
Print Assumptions mean_nested.
Print Assumptions mean_one_rank_apart.
Print Assumptions mean_one_directed.
Print Assumptions private_mean_loss_is_private.
Print Assumptions private_mean_loss_is_law.
