(** The defaults end to end: a public coin decides between two stages and one; with a private number of records a
    noisy count comes first (theory, 6 and 7; [TwoStages] in quantities/base.py, [Release] in release.py). *)
From Coq Require Import Reals Lra Lia List ZArith.
From DP Require Import Constants Laws HazardRelease OutputBounds MeanLoss OrderStatistics Variance AddRemove Lipschitz
  Geometric Staircase Adaptive ClippedSquares Counted TwoSums Reach.
Import ListNotations.
Open Scope R_scope.

(** ** Definitions *)

(** A mean of losses in two stages (the ratio of the first, the epsilon of the second), and a variance. *)
Definition staged_mean (limit q eps_b : R) (public : nat -> stages) : list R -> law (nat * nat) :=
  two_stages (fun v => v) limit q eps_b public.
Definition staged_variance (limit q eps_b : R) (ends : option (R * R)) (public : settings) (p : rule)
    (public_b : nat -> stages) : list R -> law (nat * nat) :=
  variance_stages eps_b public_b (private_reach q public limit p ends).

(** The same with a private number of records. *)
Definition staged_mean_private_n (limit q eps_b : R) (p : stages) (seen : list (Z * Z)) :
    list R -> law (nat * (Z * Z)) :=
  private_n_stages eps_b p seen clipped_total (fun x =>
    hazard_release power_monotonic q (first_grid p) (first_last p) (ranks p) (order_bounds limit (kept p) (k p) x)).
Definition staged_variance_private_n (limit q eps_b : R) (ends : option (R * R)) (public : settings) (p : rule)
    (public_b : stages) (seen : list (Z * Z)) : list R -> law (nat * (Z * Z)) :=
  private_n_stages eps_b public_b seen clipped_squares (private_reach q public limit p ends).

Definition probability (chosen : R) : Prop := 0 <= chosen <= 1.

(** What composition asks of a law, even of one on part of its outcomes. *)
Definition proper {A} (m : law A) : Prop := NoDup (outcomes m) /\ forall a, 0 <= mass m a.

(** ** Public n *)

Section PublicN.

Variables (eps : R) (share q : nat -> R).
Hypothesis eps0 : 0 < eps.
Hypothesis shares : valid_share share.

(** A variance in two stages. *)
Theorem adaptive_variance_is_private limit ends public rules public_b : valid_ends ends ->
  (forall n, exp (- (share n * eps / INR share_general)) <= q n <= 1) ->
  (forall n, valid_rule (rules n)) -> valid_stages public_b ->
  private eps (replace_one (valid_value ends)) (fun x => let n := length x in
    staged_variance limit (q n) (eps - share n * eps) ends (public n) (rules n) public_b x).
Proof.
  intros ordered ratio valid settings.
  apply (size_is_public eps _ (fun n => staged_variance limit (q n) (eps - share n * eps) ends (public n) (rules n)
    public_b)). intros n.
  assert (parts := share_between share eps n shares eps0).
  replace eps with (share n * eps + (eps - share n * eps)) at 1 by ring. apply variance_stages_private; auto.
  - lra.
  - now apply private_reach_is_private.
  - intros x. apply hazard_release_nonneg; [unfold power_general; lia|].
    apply Rlt_le_trans with (2 := proj1 (ratio n)), exp_pos.
Qed.

(** These are the probabilities of a law. *)
Theorem adaptive_variance_is_law q_of limit ends public p public_b eps_b x : 0 < q_of -> 0 < eps_b ->
  valid_stages public_b -> is_law (staged_variance limit q_of eps_b ends public p public_b x).
Proof.
  intros q0 b0 [counts _]. apply is_law_then.
  - apply hazard_is_law; [unfold power_general; lia|]. intros i. now apply weight_pos.
  - intros a _. apply staircase_is_law; auto. apply counts.
Qed.

(** The default for a variance. *)
Theorem default_variance_is_private chosen limit ends public rules public_b q_one public_one round t_max :
  (forall n, probability (chosen n)) -> valid_ends ends ->
  (forall n, exp (- (share n * eps / INR share_general)) <= q n <= 1) ->
  (forall n, valid_rule (rules n)) -> valid_stages public_b ->
  exp (- (eps / INR share_general)) <= q_one <= 1 -> rounding round t_max ->
  private eps (replace_one (valid_value ends)) (fun x => by_coin (chosen (length x))
    (fun x => let n := length x in
      staged_variance limit (q n) (eps - share n * eps) ends (public n) (rules n) public_b x)
    (private_variance q_one public_one round ends t_max) x).
Proof.
  intros coin ordered ratio valid settings ratio_one rounds.
  apply (size_is_public eps _ (fun n => by_coin (chosen n) _ _)). intros n. apply coin_private; [apply coin | |].
  - now apply adaptive_variance_is_private.
  - now apply private_variance_is_private.
Qed.

(** The default for a mean of losses, with a cap or without. *)
Theorem default_mean_loss_is_private chosen limit public q_one public_one round cap t_max :
  (forall n, probability (chosen n)) -> 0 <= limit -> cap = Some limit \/ cap = None ->
  (forall n, exp (- (share n * eps / INR share_monotonic)) <= q n <= 1) -> valid_stages public ->
  exp (- (eps / INR share_monotonic)) <= q_one <= 1 -> rounding round t_max ->
  private eps (replace_one (valid_loss (Some limit))) (fun x => by_coin (chosen (length x))
    (fun x => let n := length x in staged_mean limit (q n) (eps - share n * eps) public x)
    (private_mean_loss q_one public_one round cap t_max) x).
Proof.
  intros coin limit0 caps ratio settings ratio_one rounds.
  apply (size_is_public eps _ (fun n => by_coin (chosen n) _ _)). intros n. apply coin_private; [apply coin | |].
  - now apply adaptive_mean_loss_is_private.
  - intros x x' (ok & ok' & pair). apply private_mean_loss_is_private; auto.
    assert (less : forall y, Forall (valid_loss (Some limit)) y -> Forall (valid_loss cap) y).
    { intros y. apply Forall_impl. intros v [v0 le]. destruct caps as [-> | ->]; now split. }
    split; [|split]; auto.
Qed.

End PublicN.

(** ** Private n *)

Section PrivateN.

(** [rest] is what the count leaves of epsilon. *)
Variables (eps : R) (share q : Z -> R).
Let rest := eps - share_count * eps.
Hypothesis eps0 : 0 < eps.
Hypothesis shares : forall m, share_first <= share m <= share_first_of_few.

Variables (chosen : Z -> R) (seen_counts : list Z) (seen : list (Z * Z)) (public_b : Z -> stages).
Hypothesis coin : forall m, probability (chosen m).
Hypothesis once : NoDup seen.
Hypothesis settings : forall m, (1 <= k (public_b m))%nat /\ (0 < fineness (public_b m))%nat /\
  forall drawn, 0 < clip (public_b m) drawn.

Lemma rest_between m : 0 < share m * rest < rest.
Proof.
  specialize (shares m). assert (0 < rest) by (unfold rest, share_count; lra).
  unfold share_first, share_first_of_few in shares. nra.
Qed.

Lemma staged_proper eps_b p T (first : list R -> law nat) x : 0 < eps_b -> (0 < fineness p)%nat ->
  proper (first x) -> proper (private_n_stages eps_b p seen T first x).
Proof.
  intros b0 n0 [once_first nonneg]. split; [apply then_once; auto|].
  intros [drawn ab]. apply Rmult_le_pos; auto. left. now apply noisy_sums_pos.
Qed.

(** A noisy count, and then a coin that decides between two mechanisms, all of whose settings may depend on it. *)
Theorem counted_coin_private {B} (eq_dec : forall a b : B, {a = b} + {a <> b}) valid two
    (one : Z -> list R -> law B) :
  (forall m, private rest (add_or_remove_one valid) (two m)) -> (forall m x, proper (two m x)) ->
  (forall m, private rest (add_or_remove_one valid) (one m)) -> (forall m x, proper (one m x)) ->
  private eps (add_or_remove_one valid)
    (counted (share_count * eps) seen_counts (fun x => Z.of_nat (length x))
      (fun m => by_coin (A := nat * (Z * Z)) (chosen m) (two m) (one m))).
Proof.
  intros private_two laws_two private_one laws_one.
  replace eps with (share_count * eps + rest) at 1 by (unfold rest; ring).
  assert (dec : forall a b : nat * (Z * Z) + B, {a = b} + {a <> b}) by (repeat decide equality).
  apply (counted_private dec).
  - unfold share_count. lra.
  - intros x x' [(_ & before & v & after & -> & ->) | (_ & before & v & after & -> & ->)];
      rewrite !app_length; simpl; lia.
  - intros m. apply coin_private; auto. apply coin.
  - intros m x. destruct (laws_two m x) as [o nonneg], (laws_one m x) as [o' nonneg'], (coin m).
    split; [now apply coin_once|]. intros [a | b]; apply Rmult_le_pos; auto; lra.
Qed.

(** The default for a variance, given what is private in one stage ... *)
Theorem default_variance_private_n_is_private {B} (eq_dec : forall a b : B, {a = b} + {a <> b}) limit ends public
    rules (one : Z -> list R -> law B) : valid_ends ends ->
  (forall m, exp (- (share m * rest / INR share_general)) <= q m <= 1) -> (forall m, valid_rule (rules m)) ->
  (forall m, private rest (add_or_remove_one (valid_value ends)) (one m)) -> (forall m x, proper (one m x)) ->
  private eps (add_or_remove_one (valid_value ends))
    (counted (share_count * eps) seen_counts (fun x => Z.of_nat (length x)) (fun m => by_coin (chosen m)
      (staged_variance_private_n limit (q m) (rest - share m * rest) ends (public m) (rules m) (public_b m) seen)
      (one m))).
Proof.
  intros ordered ratio valid private_one laws_one.
  assert (laws : forall m x, proper (private_reach (q m) (public m) limit (rules m) ends x)).
  { intros m x. apply hazard_release_nonneg; [unfold power_general; lia|].
    apply Rlt_le_trans with (2 := proj1 (ratio m)), exp_pos. }
  apply counted_coin_private; auto; intros m; assert (parts := rest_between m);
    destruct (settings m) as (_ & n0 & scales).
  - replace rest with (share m * rest + (rest - share m * rest)) at 1 by ring.
    apply private_n_stages_private; auto.
    + lra.
    + intros C C0. apply clipped_squares_grows. lra.
    + now apply private_reach_private_n_is_private.
    + apply laws.
  - intros x. apply staged_proper; auto. lra.
Qed.

(** ... and for a mean of losses. *)
Theorem default_mean_private_n_is_private limit q_one public_one round cap t_max :
  0 <= limit -> cap = Some limit \/ cap = None /\ 0 <= t_max ->
  (forall m, exp (- (share m * rest / INR share_monotonic)) <= q m <= 1) ->
  exp (- (rest / INR share_general)) <= q_one <= 1 -> rounding round t_max ->
  private eps (add_or_remove_one (valid_loss (Some limit)))
    (counted (share_count * eps) seen_counts (fun x => Z.of_nat (length x)) (fun m => by_coin (chosen m)
      (staged_mean_private_n limit (q m) (rest - share m * rest) (public_b m) seen)
      (private_mean_private_n q_one (grid (public_one m)) (last (public_one m)) (capacity (public_one m)) round cap
        t_max))).
Proof.
  intros limit0 caps ratio ratio_one rounds.
  assert (laws : forall m x, proper (hazard_release power_monotonic (q m) (first_grid (public_b m))
    (first_last (public_b m)) (ranks (public_b m)) (order_bounds limit (kept (public_b m)) (k (public_b m)) x))).
  { intros m x. apply hazard_release_nonneg; [unfold power_monotonic; lia|].
    apply Rlt_le_trans with (2 := proj1 (ratio m)), exp_pos. }
  apply (counted_coin_private Nat.eq_dec); intros m; assert (parts := rest_between m);
    destruct (settings m) as (k1 & n0 & scales).
  - replace rest with (share m * rest + (rest - share m * rest)) at 1 by ring.
    apply private_n_stages_private; auto.
    + lra.
    + intros C C0. apply clipped_total_grows; [lra | now intros v []].
    + now apply order_statistic_private_n.
    + apply laws.
  - intros x. apply staged_proper; auto. lra.
  - intros x x' pair. apply private_mean_private_n_is_private; auto; [destruct caps as [-> | [-> t0]]; auto|].
    assert (less : forall y, Forall (valid_loss (Some limit)) y -> Forall (valid_loss cap) y).
    { intros y. apply Forall_impl. intros v [v0 le]. destruct caps as [-> | [-> _]]; now split. }
    destruct pair as [(ok & pair) | (ok & pair)]; [left | right]; split; auto.
  - intros x. apply hazard_release_nonneg; [unfold power_general; lia|].
    apply Rlt_le_trans with (2 := proj1 ratio_one), exp_pos.
Qed.

End PrivateN.
