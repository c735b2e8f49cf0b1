(** Where the resolution comes from a noisy count: metrics with a private number of records, and AUC, whose count
    is that of the positives ([OneStage] in quantities/base.py, [RankingNoise] in ranks.py). *)
From Coq Require Import Reals Lra Lia List ZArith.
From DP Require Import Constants Laws HazardRelease OutputBounds MeanLoss Geometric AddRemove Auc.
Import ListNotations.
Open Scope R_scope.

(** ** Definitions *)

(** A count with two-sided geometric noise of rate [eps], on any finite list of noisy counts. *)
Definition noisy_count (eps : R) (seen : list Z) (count : Z) : law Z :=
  Law seen (fun m => noise (exp (- eps)) (m - count)).

(** First the noisy count, then a release whose settings may depend on it; both are released. *)
Definition counted {X A : Type} (eps : R) (seen : list Z) (count : X -> Z) (release : Z -> X -> law A) (x : X) :
    law (Z * A) :=
  then_ (noisy_count eps seen (count x)) (fun m => release m x).

(** ** Facts *)

(** A count that moves by at most 1, and then any release that is private whatever the noisy count was. *)
Theorem counted_private {X A} (eq_dec : forall a b : A, {a = b} + {a <> b}) eps_count eps
    (neighbours : X -> X -> Prop) seen (count : X -> Z) (release : Z -> X -> law A) : 0 < eps_count ->
  (forall x x', neighbours x x' -> (Z.abs (count x - count x') <= 1)%Z) ->
  (forall m, private eps neighbours (release m)) ->
  (forall m x, NoDup (outcomes (release m x)) /\ forall k, 0 <= mass (release m x) k) ->
  private (eps_count + eps) neighbours (counted eps_count seen count release).
Proof.
  intros pos near second laws.
  assert (q01 : 0 < exp (- eps_count) < 1).
  { split; [apply exp_pos|]. rewrite <- exp_0. apply exp_increasing. lra. }
  assert (way : forall x x', (Z.abs (count x - count x') <= 1)%Z ->
    (forall m, within eps (release m x) (release m x')) ->
    within (eps_count + eps) (counted eps_count seen count release x) (counted eps_count seen count release x')).
  { intros x x' moved rest. apply within_then; auto.
    - intros m _. simpl.
      assert (ratio := noise_ratio (exp (- eps_count)) q01 (m - count x') (m - count x) ltac:(lia)).
      rewrite exp_Ropp in ratio at 1. assert (e0 := exp_pos eps_count).
      apply Rmult_le_reg_l with (/ exp eps_count); [now apply Rinv_0_lt_compat|].
      rewrite <- Rmult_assoc, Rinv_l by lra. lra.
    - intros m _. left. now apply noise_pos.
    - intros m _. apply (rest m).
    - intros m b _ into. split; [apply laws|].
      apply (within_at eq_dec); [apply laws | auto | apply rest]. }
  intros x x' pair. assert (moved := near x x' pair). assert (both := fun m => second m x x' pair).
  split; apply way; try lia; intros m; apply both.
Qed.

Lemma hazard_release_nonneg p q grid K c b : (1 <= p)%nat -> 0 < q ->
  NoDup (outcomes (hazard_release p q grid K c b)) /\ forall k, 0 <= mass (hazard_release p q grid K c b) k.
Proof.
  intros p1 q0. split; [apply seq_NoDup|]. intros k. apply hazard_mass_nonneg; auto. intros i. now apply weight_pos.
Qed.

(** A mean of losses with a private number of records, its noisy count included: the count takes a twentieth of
    epsilon. *)
Theorem counted_mean_is_private eps q seen public round cap t_max :
  0 < eps -> exp (- ((eps - share_count * eps) / INR share_general)) <= q <= 1 -> rounding round t_max ->
  match cap with Some B => 0 <= B | None => 0 <= t_max end ->
  private eps (add_or_remove_one (valid_loss cap))
    (counted (share_count * eps) seen (fun x => Z.of_nat (length x))
      (fun m => private_mean_private_n q (grid (public m)) (last (public m)) (capacity (public m)) round cap t_max)).
Proof.
  intros pos ratio rounds cap0. replace eps with (share_count * eps + (eps - share_count * eps)) at 1 by ring.
  apply (counted_private Nat.eq_dec).
  - unfold share_count. lra.
  - intros x x' [(_ & before & v & after & -> & ->) | (_ & before & v & after & -> & ->)];
      rewrite !app_length; simpl; lia.
  - intros m. now apply private_mean_private_n_is_private.
  - intros m x. apply hazard_release_nonneg; [unfold power_general; lia|].
    apply Rlt_le_trans with (2 := proj1 ratio), exp_pos.
Qed.

(** 1 - AUC, the noisy number of positives included, which takes as much. *)
Theorem counted_auc_is_private eps q seen public round :
  0 < eps -> exp (- ((eps - share_count * eps) / INR share_general)) <= q <= 1 ->
  (forall a b, a <= b -> round a <= round b) ->
  private eps replace_record
    (counted (share_count * eps) seen (fun x => Z.of_nat (positives x)) (fun m => private_auc q (public m) round)).
Proof.
  intros pos ratio rounds. replace eps with (share_count * eps + (eps - share_count * eps)) at 1 by ring.
  apply (counted_private Nat.eq_dec).
  - unfold share_count. lra.
  - intros x x' (before & [p s] & [p' s'] & after & -> & ->). rewrite !positives_app. simpl. destruct p, p'; lia.
  - intros m. now apply private_auc_is_private.
  - intros m x. apply hazard_release_nonneg; [unfold power_general; lia|].
    apply Rlt_le_trans with (2 := proj1 ratio), exp_pos.
Qed.
