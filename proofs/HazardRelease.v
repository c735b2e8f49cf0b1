(** Hazard selection on a finite public grid is differentially private (theory, 3; [HazardLaw] in
    hazard.py). *)
From Coq Require Import Reals Lra Lia List ZArith.
From Coquelicot Require Import Rcomplements.
From DP Require Import Constants Laws HazardLaw.
Import ListNotations.
Open Scope R_scope.

(** ** Definitions *)

(** Output k has the hazard [w k]; [hazard w k] is Lambda before output k: the sum of the hazards of outputs
    0, ..., k-1. *)
Fixpoint hazard (w : nat -> R) (k : nat) : R :=
  match k with O => 0 | S k => hazard w k + w k end.

(** Output k < K is released if the random level lies between Lambda before it and after it; the last output,
    K, which has no hazard of its own, if the level is reached nowhere. *)
Definition hazard_mass (p : nat) (w : nat -> R) (K k : nat) : R :=
  if (k <? K)%nat then H p tail (hazard w (S k) / peak) - H p tail (hazard w k / peak)
  else 1 - H p tail (hazard w K / peak).

Definition hazard_law (p : nat) (w : nat -> R) (K : nat) : law nat := Law (seq 0 (S K)) (hazard_mass p w K).

(** The hazard of an output at level j = s - 1/2: 1 just above the metric, q^l at l ranks below it, q^-l at
    level l above. *)
Definition weight (q : R) (level : nat -> Z) (k : nat) : R := powerRZ q (- level k).

(** ** Facts *)

Lemma hazard_pos w : (forall k, 0 < w k) -> forall k, 0 <= hazard w k.
Proof. intros pos k. induction k; simpl; [lra|]. specialize (pos k). lra. Qed.

Lemma hazard_le r w w' : (forall k, w k <= r * w' k) -> forall k, hazard w k <= r * hazard w' k.
Proof. intros le k. induction k; simpl; [lra|]. specialize (le k). lra. Qed.

Lemma peak_pos : 0 < peak.
Proof. unfold peak. lra. Qed.

Lemma over_peak w k : hazard w (S k) / peak = hazard w k / peak + w k / peak.
Proof. simpl. unfold peak. field. Qed.

(** In units of z0, inequalities between hazards stay what they are. *)
Lemma inside w k x : hazard w k / peak + x * (w k / peak) = (hazard w k + x * w k) / peak.
Proof. unfold peak. field. Qed.

Lemma per_peak_pos a : 0 < a -> 0 < a / peak.
Proof. unfold peak. lra. Qed.

Lemma per_peak_nonneg a : 0 <= a -> 0 <= a / peak.
Proof. unfold peak. lra. Qed.

Lemma per_peak_le a b : a <= b -> a / peak <= b / peak.
Proof. unfold peak. lra. Qed.

Lemma per_peak_scaled r a b : a <= r * b -> a / peak <= r * (b / peak).
Proof. unfold peak. lra. Qed.

#[local] Hint Resolve per_peak_pos per_peak_nonneg per_peak_le per_peak_scaled : core.

Section Release.

Variable p : nat.
Hypothesis p_pos : (1 <= p)%nat.

Let t_pos : (1 <= tail)%nat.
Proof. unfold tail. lia. Qed.

Lemma hazard_mass_nonneg w K k : (forall k, 0 < w k) -> 0 <= hazard_mass p w K k.
Proof.
  intros pos. assert (n := hazard_pos w pos). unfold hazard_mass. destruct (k <? K)%nat.
  - assert (order : hazard w k / peak <= hazard w (S k) / peak).
    { apply per_peak_le. simpl. specialize (pos k). lra. }
    assert (q := H_increasing p tail p_pos t_pos _ _ (per_peak_nonneg _ (n k)) order). lra.
  - assert (q := H_below_1 p tail p_pos t_pos _ (per_peak_nonneg _ (n K))). lra.
Qed.

(** The probabilities are those of a law: not negative, with the sum 1. *)
Theorem hazard_is_law w K : (forall k, 0 < w k) -> is_law (hazard_law p w K).
Proof.
  intros pos. split; [apply seq_NoDup | split].
  - intros k _. now apply hazard_mass_nonneg.
  - unfold hazard_law, outcomes. rewrite seq_S, sum_of_app. simpl. unfold hazard_mass at 2.
    rewrite Nat.ltb_irrefl.
    assert (partial : forall m, (m <= K)%nat ->
      sum_of (hazard_mass p w K) (seq 0 m) = H p tail (hazard w m / peak)).
    { induction m as [|m IH]; intros le.
      - simpl. unfold Rdiv. rewrite Rmult_0_l. now rewrite H_0.
      - rewrite seq_S, sum_of_app, IH by lia. simpl. unfold hazard_mass.
        destruct (Nat.ltb_spec m K); [simpl; ring | lia]. }
    rewrite partial; auto. ring.
Qed.

(** ** 2. Every output, the last one included *)

(** Where the hazards of all outputs are within a factor [r] of each other, either way ... *)
Lemma hazard_ratio_general r w w' K : 1 <= r ->
  (forall k, 0 < w k) -> (forall k, 0 < w' k) ->
  (forall k, w k <= r * w' k) -> (forall k, w' k <= r * w k) ->
  forall k, hazard_mass p w K k <= r ^ max p (tail + 2) * hazard_mass p w' K k.
Proof.
  intros r1 pos pos' le le' k.
  assert (up := hazard_le r w w' le). assert (down := hazard_le r w' w le').
  assert (n := hazard_pos w pos). assert (n' := hazard_pos w' pos').
  unfold hazard_mass. destruct (k <? K)%nat.
  - rewrite !over_peak. specialize (pos k); specialize (pos' k); specialize (le k); specialize (le' k).
    specialize (up k); specialize (down k); specialize (n k); specialize (n' k).
    apply cell_ratio; auto. intros x [x0 x1]. rewrite !inside.
    apply density_ratio_general; auto.
    + apply per_peak_pos. nra.
    + apply per_peak_pos. nra.
    + apply per_peak_scaled. nra.
    + apply per_peak_scaled. nra.
  - specialize (up K); specialize (down K); specialize (n K); specialize (n' K).
    assert (u0 := per_peak_nonneg _ n). assert (u0' := per_peak_nonneg _ n').
    assert (r0 := H_below_1 p tail p_pos t_pos _ u0). assert (r0' := H_below_1 p tail p_pos t_pos _ u0').
    assert (big : 1 <= r ^ max p (tail + 2)) by now apply pow_R1_Rle.
    destruct (Rle_dec (hazard w K / peak) (hazard w' K / peak)) as [lower | higher].
    + apply Rle_trans with (r ^ tail * (1 - H p tail (hazard w' K / peak))).
      * apply rest_down; auto.
      * apply Rmult_le_compat_r; [lra|]. apply Rle_pow; [auto | lia].
    + assert (q := H_increasing p tail p_pos t_pos (hazard w' K / peak) (hazard w K / peak) u0'). nra.
Qed.

(** ... and where those of one data set are the larger ones everywhere. *)
Lemma hazard_ratio_monotonic r w w' K : 1 <= r ->
  (forall k, 0 < w k) -> (forall k, w k <= w' k <= r * w k) ->
  forall k, hazard_mass p w' K k <= r ^ max p (tail + 1) * hazard_mass p w K k /\
            hazard_mass p w K k <= r ^ max p (tail + 1) * hazard_mass p w' K k.
Proof.
  intros r1 pos le k.
  assert (pos' : forall k, 0 < w' k) by (intros i; specialize (pos i); specialize (le i); lra).
  assert (up := hazard_le r w' w (fun k => proj2 (le k))).
  assert (down : forall k, hazard w k <= hazard w' k).
  { intros i. rewrite <- (Rmult_1_l (hazard w' i)). apply hazard_le. intros j. rewrite Rmult_1_l. apply le. }
  assert (n := hazard_pos w pos). assert (n' := hazard_pos w' pos').
  unfold hazard_mass. destruct (k <? K)%nat.
  - rewrite !over_peak. specialize (pos k); specialize (pos' k); specialize (le k).
    specialize (up k); specialize (down k); specialize (n k); specialize (n' k).
    assert (ratio : forall x, 0 < x < 1 ->
      density p tail ((hazard w' k + x * w' k) / peak) * (w' k / peak) <= r ^ max p (tail + 1) *
        (density p tail ((hazard w k + x * w k) / peak) * (w k / peak)) /\
      density p tail ((hazard w k + x * w k) / peak) * (w k / peak) <= r ^ max p (tail + 1) *
        (density p tail ((hazard w' k + x * w' k) / peak) * (w' k / peak))).
    { intros x [x0 x1]. apply density_ratio_monotonic; auto.
      - apply per_peak_pos. nra.
      - split; [apply per_peak_le | apply per_peak_scaled]; nra.
      - split; [apply per_peak_le | apply per_peak_scaled]; lra. }
    split; (apply cell_ratio; auto); intros x within_cell; rewrite !inside; now apply ratio.
  - specialize (up K); specialize (down K); specialize (n K); specialize (n' K).
    assert (u0 := per_peak_nonneg _ n). assert (u0' := per_peak_nonneg _ n').
    assert (r0 := H_below_1 p tail p_pos t_pos _ u0). assert (r0' := H_below_1 p tail p_pos t_pos _ u0').
    assert (big : 1 <= r ^ max p (tail + 1)) by now apply pow_R1_Rle.
    assert (q := H_increasing p tail p_pos t_pos _ _ u0 (per_peak_le _ _ down)). split; [nra|].
    apply Rle_trans with (r ^ tail * (1 - H p tail (hazard w' K / peak))).
    + apply rest_down; auto.
    + apply Rmult_le_compat_r; [lra|]. apply Rle_pow; [auto | lia].
Qed.

End Release.

(** ** From hazards to ranks *)

Lemma weight_pos q level k : 0 < q -> 0 < weight q level k.
Proof. intros pos. now apply powerRZ_lt. Qed.

Lemma powerRZ_antitone q m n : 0 < q <= 1 -> (m <= n)%Z -> powerRZ q n <= powerRZ q m.
Proof.
  intros [q0 q1] le. replace n with (m + Z.of_nat (Z.to_nat (n - m)))%Z by lia.
  rewrite powerRZ_add, <- pow_powerRZ by lra.
  assert (0 < powerRZ q m) by now apply powerRZ_lt.
  assert (q ^ Z.to_nat (n - m) <= 1) by (rewrite <- (pow1 (Z.to_nat (n - m))); apply pow_incr; lra). nra.
Qed.

(** One rank more multiplies the hazard by at most 1/q. *)
Lemma weight_step q level level' k : 0 < q <= 1 -> (level' k <= level k + 1)%Z ->
  weight q level' k <= / q * weight q level k.
Proof.
  intros q01 le. unfold weight. apply Rle_trans with (powerRZ q (- level k - 1)).
  - apply powerRZ_antitone; [auto | lia].
  - unfold Z.sub. rewrite powerRZ_add by lra. simpl. right. field. lra.
Qed.

(** What q rounded up is good for: 1/q to the power of the shares is at most exp(eps). *)
Lemma power_of_ratio eps q n : (0 < n)%nat -> 0 < q -> exp (- (eps / INR n)) <= q -> (/ q) ^ n <= exp eps.
Proof.
  intros n0 q0 up. assert (0 < INR n) by now apply lt_0_INR.
  assert (exp_pow : forall m x, exp x ^ m = exp (INR m * x)).
  { induction m as [|m IH]; intros x.
    - simpl. now rewrite Rmult_0_l, exp_0.
    - simpl pow. rewrite IH, <- exp_plus. f_equal. rewrite S_INR. ring. }
  replace (exp eps) with (exp (eps / INR n) ^ n).
  - apply pow_incr. split; [left; now apply Rinv_0_lt_compat|].
    rewrite <- (Rinv_inv (exp (eps / INR n))).
    rewrite <- exp_Ropp. apply Rinv_le_contravar; [apply exp_pos | auto].
  - rewrite exp_pow. f_equal. field. lra.
Qed.

Lemma inverse_at_least_1 q : 0 < q <= 1 -> 1 <= / q.
Proof. intros [q0 q1]. rewrite <- Rinv_1. now apply Rinv_le_contravar. Qed.

(** Ranks of any metric move by at most 1: the laws are within epsilon, for every grid, every set of outputs
    and every q with exp(-epsilon/5) <= q <= 1, so also for the q of the program, which is rounded up. *)
Theorem hazard_private_general eps q level level' K :
  exp (- (eps / INR share_general)) <= q <= 1 ->
  (forall k, (Z.abs (level k - level' k) <= 1)%Z) ->
  within eps (hazard_law power_general (weight q level) K) (hazard_law power_general (weight q level') K).
Proof.
  intros [up q1] near. assert (q0 : 0 < q) by (apply Rlt_le_trans with (2 := up); apply exp_pos).
  assert (p1 : (1 <= power_general)%nat) by (unfold power_general; lia).
  assert (pos := fun level k => weight_pos q level k q0).
  apply within_of_outcomes; auto. intros k _. simpl.
  apply Rle_trans with ((/ q) ^ share_general * hazard_mass power_general (weight q level') K k).
  - assert (step : forall i, (level i <= level' i + 1 /\ level' i <= level i + 1)%Z)
      by (intros i; specialize (near i); lia).
    apply (hazard_ratio_general power_general p1); auto using inverse_at_least_1;
      intros i; apply weight_step; auto; apply step.
  - apply Rmult_le_compat_r; [now apply hazard_mass_nonneg|].
    now apply power_of_ratio; auto.
Qed.

(** Monotonic metrics, whose ranks move by at most 1, all in one direction: epsilon/4 is enough. *)
Theorem hazard_private_monotonic eps q level level' K :
  exp (- (eps / INR share_monotonic)) <= q <= 1 ->
  (forall k, (level k <= level' k <= level k + 1)%Z) ->
  within eps (hazard_law power_monotonic (weight q level) K) (hazard_law power_monotonic (weight q level') K) /\
  within eps (hazard_law power_monotonic (weight q level') K) (hazard_law power_monotonic (weight q level) K).
Proof.
  intros [up q1] near. assert (q0 : 0 < q) by (apply Rlt_le_trans with (2 := up); apply exp_pos).
  assert (p1 : (1 <= power_monotonic)%nat) by (unfold power_monotonic; lia).
  assert (pos := fun level k => weight_pos q level k q0).
  assert (ratio := hazard_ratio_monotonic power_monotonic p1 (/ q) (weight q level) (weight q level') K
    (inverse_at_least_1 q (conj q0 q1)) (pos level)).
  assert (ordered : forall k, weight q level k <= weight q level' k <= / q * weight q level k).
  { intros k. specialize (near k). split; [apply powerRZ_antitone | apply weight_step]; auto; lia. }
  specialize (ratio ordered).
  assert (cost : (/ q) ^ share_monotonic <= exp eps) by (now apply power_of_ratio; auto).
  assert (nonneg := fun level k => hazard_mass_nonneg power_monotonic p1 (weight q level) K k (pos level)).
  split; apply within_of_outcomes; auto; intros k _; simpl; destruct (ratio k) as [above below].
  - apply Rle_trans with (1 := below). now apply Rmult_le_compat_r.
  - apply Rle_trans with (1 := above). now apply Rmult_le_compat_r.
Qed.
