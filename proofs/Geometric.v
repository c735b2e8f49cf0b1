(** Two-sided geometric noise on the whole numbers, clamped to 0, ..., M ([GeometricLaw] in _laws.py). *)
From Coq Require Import Reals Lra Lia List ZArith.
From Coquelicot Require Import Coquelicot.
From DP Require Import Laws.
Import ListNotations.
Open Scope R_scope.

(** ** Definitions *)

(** Noise of k steps has a probability proportional to q^|k|, where q = exp(-rate). *)
Definition noise (q : R) (k : Z) : R := (1 - q) / (1 + q) * q ^ Z.abs_nat k.

(** The probability of noise of at most k steps. *)
Definition noise_cdf (q : R) (k : Z) : R :=
  if (k <? 0)%Z then q ^ Z.abs_nat k / (1 + q) else 1 - q ^ Z.abs_nat (k + 1) / (1 + q).

(** [centre] plus noise, clamped to 0, ..., M: the ends gather all that lies beyond. *)
Definition geometric_mass (q : R) (centre : Z) (M k : nat) : R :=
  let place := (Z.of_nat k - centre)%Z in
  if (k =? 0)%nat then if (M =? 0)%nat then 1 else noise_cdf q place
  else if (k =? M)%nat then 1 - noise_cdf q (place - 1) else noise q place.

Definition geometric_law (q : R) (centre : Z) (M : nat) : law nat :=
  Law (seq 0 (S M)) (geometric_mass q centre M).

(** ** The distribution function is the sum of the probabilities, from 0 at minus infinity to 1 at infinity *)

Section Noise.

Variable q : R.
Hypothesis q01 : 0 < q < 1.

Theorem noise_cdf_step k : noise_cdf q k - noise_cdf q (k - 1) = noise q k.
Proof.
  unfold noise_cdf, noise. destruct (Z.ltb_spec k 0), (Z.ltb_spec (k - 1) 0); try lia.
  - replace (Z.abs_nat (k - 1)) with (S (Z.abs_nat k)) by lia. simpl. field. lra.
  - replace k with 0%Z by lia. simpl. field. lra.
  - replace (Z.abs_nat (k - 1 + 1)) with (Z.abs_nat k) by lia.
    replace (Z.abs_nat (k + 1)) with (S (Z.abs_nat k)) by lia. simpl. field. lra.
Qed.

Theorem noise_cdf_limits :
  is_lim_seq (fun n => noise_cdf q (- Z.of_nat n)) 0 /\ is_lim_seq (fun n => noise_cdf q (Z.of_nat n)) 1.
Proof.
  assert (vanish : is_lim_seq (fun n => q ^ n / (1 + q)) 0).
  { replace (Finite 0) with (Rbar_mult 0 (/ (1 + q))) by (simpl; f_equal; ring).
    apply (is_lim_seq_scal_r (fun n => q ^ n)), is_lim_seq_geom. rewrite Rabs_right; lra. }
  split.
  - apply is_lim_seq_ext_loc with (2 := vanish). exists 1%nat. intros n n1. unfold noise_cdf.
    destruct (Z.ltb_spec (- Z.of_nat n) 0); [|lia]. now replace (Z.abs_nat (- Z.of_nat n)) with n by lia.
  - apply is_lim_seq_ext with (fun n => 1 - q ^ S n / (1 + q)).
    + intros n. unfold noise_cdf. destruct (Z.ltb_spec (Z.of_nat n) 0); [lia|].
      now replace (Z.abs_nat (Z.of_nat n + 1)) with (S n) by lia.
    + replace (Finite 1) with (Finite (1 - 0)) by (f_equal; ring). apply is_lim_seq_minus'.
      * apply is_lim_seq_const.
      * now apply (is_lim_seq_incr_1 (fun n => q ^ n / (1 + q))).
Qed.

Lemma noise_pos k : 0 < noise q k.
Proof.
  unfold noise. apply Rmult_lt_0_compat; [apply Rdiv_lt_0_compat; lra | apply pow_lt; lra].
Qed.

(** ** One step away, all probabilities are within a factor 1/q *)

Lemma pow_drop m n : (m <= n)%nat -> q ^ n <= q ^ m.
Proof.
  intros le. replace n with (m + (n - m))%nat by lia. rewrite pow_add.
  assert (0 < q ^ m) by (apply pow_lt; lra).
  assert (q ^ (n - m) <= 1) by (rewrite <- (pow1 (n - m)); apply pow_incr; lra). nra.
Qed.

Lemma pow_pos n : 0 < q ^ n.
Proof. apply pow_lt. lra. Qed.

Lemma noise_ratio k j : (Z.abs (k - j) <= 1)%Z -> q * noise q j <= noise q k.
Proof.
  intros near. unfold noise. assert (c0 : 0 < (1 - q) / (1 + q)) by (apply Rdiv_lt_0_compat; lra).
  assert (le := pow_drop (Z.abs_nat k) (S (Z.abs_nat j)) ltac:(lia)). simpl in le. nra.
Qed.

Lemma noise_cdf_range k : 0 < noise_cdf q k < 1.
Proof.
  assert (below : forall n, 0 < q ^ n / (1 + q) < 1).
  { intros n. split; [apply Rdiv_lt_0_compat; [apply pow_pos | lra]|].
    apply Rmult_lt_reg_r with (1 + q); [lra|]. field_simplify; [|lra].
    assert (le := pow_drop 0 n ltac:(lia)). simpl in le. lra. }
  unfold noise_cdf. destruct (k <? 0)%Z.
  - apply below.
  - assert (b := below (Z.abs_nat (k + 1))). lra.
Qed.

Lemma shrunk_rest n : q * (1 - q * q ^ n / (1 + q)) <= 1 - q ^ n / (1 + q).
Proof.
  assert (le := pow_drop 0 n ltac:(lia)). simpl in le. assert (p := pow_pos n).
  apply Rmult_le_reg_r with (1 + q); [lra|].
  replace (q * (1 - q * q ^ n / (1 + q)) * (1 + q)) with (q * (1 + q) - q * q * q ^ n) by (field; lra).
  replace ((1 - q ^ n / (1 + q)) * (1 + q)) with (1 + q - q ^ n) by (field; lra).
  assert (0 <= (1 - q ^ n) * (1 - q * q)) by (apply Rmult_le_pos; nra). lra.
Qed.

Lemma noise_cdf_up k : noise_cdf q (k - 1) <= noise_cdf q k /\ q * noise_cdf q k <= noise_cdf q (k - 1).
Proof.
  split; [assert (s := noise_cdf_step k); assert (p := noise_pos k); lra|].
  unfold noise_cdf. destruct (Z.ltb_spec k 0), (Z.ltb_spec (k - 1) 0); try lia.
  - replace (Z.abs_nat (k - 1)) with (S (Z.abs_nat k)) by lia. simpl. right. field. lra.
  - replace k with 0%Z by lia. simpl. right. field. lra.
  - replace (Z.abs_nat (k - 1 + 1)) with (Z.abs_nat k) by lia.
    replace (Z.abs_nat (k + 1)) with (S (Z.abs_nat k)) by lia. apply shrunk_rest.
Qed.

Lemma noise_rest_down k : q * (1 - noise_cdf q (k - 1)) <= 1 - noise_cdf q k.
Proof.
  unfold noise_cdf. destruct (Z.ltb_spec k 0), (Z.ltb_spec (k - 1) 0); try lia.
  - replace (Z.abs_nat (k - 1)) with (S (Z.abs_nat k)) by lia. apply shrunk_rest.
  - replace k with 0%Z by lia. simpl. right. field. lra.
  - replace (Z.abs_nat (k - 1 + 1)) with (Z.abs_nat k) by lia.
    replace (Z.abs_nat (k + 1)) with (S (Z.abs_nat k)) by lia. simpl. right. field. lra.
Qed.

Lemma geometric_mass_pos centre M k : 0 < geometric_mass q centre M k.
Proof.
  unfold geometric_mass. destruct (k =? 0)%nat, (M =? 0)%nat, (k =? M)%nat; try lra; try apply noise_pos;
    match goal with |- context [noise_cdf q ?j] => assert (r := noise_cdf_range j); lra end.
Qed.

(** Clamped noise is a probability law ... *)
Theorem geometric_is_law centre M : is_law (geometric_law q centre M).
Proof.
  split; [apply seq_NoDup | split].
  - intros k _. left. apply geometric_mass_pos.
  - destruct M as [|M]; [simpl; unfold geometric_mass; simpl; ring|].
    unfold geometric_law, outcomes. rewrite seq_S, sum_of_app.
    assert (partial : forall m, (m <= M)%nat ->
      sum_of (geometric_mass q centre (S M)) (seq 0 (S m)) = noise_cdf q (Z.of_nat m - centre)).
    { induction m as [|m IH]; intros le; [simpl; unfold geometric_mass; simpl; ring|].
      rewrite seq_S, sum_of_app, IH by lia. simpl sum_of. unfold geometric_mass. rewrite ?Nat.add_0_l.
      destruct (Nat.eqb_spec (S m) (S M)); [lia|]. simpl (S m =? 0)%nat. cbv iota.
      rewrite <- (noise_cdf_step (Z.of_nat (S m) - centre)).
      replace (Z.of_nat (S m) - centre - 1)%Z with (Z.of_nat m - centre)%Z by lia. ring. }
    cbn [mass]. rewrite (partial M) by lia. simpl sum_of. unfold geometric_mass.
    rewrite ?Nat.add_0_l, Nat.eqb_refl. simpl (S M =? 0)%nat. cbv iota.
    replace (Z.of_nat (S M) - centre - 1)%Z with (Z.of_nat M - centre)%Z by lia. ring.
Qed.

(** ... and moving its centre by one step changes each of its probabilities by a factor of at most 1/q. *)
Lemma geometric_step centre centre' M k : (Z.abs (centre - centre') <= 1)%Z ->
  q * geometric_mass q centre' M k <= geometric_mass q centre M k.
Proof.
  intros near. unfold geometric_mass.
  set (i := (Z.of_nat k - centre)%Z). set (j := (Z.of_nat k - centre')%Z).
  assert (cases : i = j \/ i = (j - 1)%Z \/ j = (i - 1)%Z) by (unfold i, j; lia).
  assert (shrink : forall a, 0 < a -> q * a <= a) by (intros; nra).
  destruct (k =? 0)%nat; [destruct (M =? 0)%nat; [lra|] | destruct (k =? M)%nat].
  - destruct cases as [-> | [-> | ->]].
    + apply shrink, noise_cdf_range.
    + apply noise_cdf_up.
    + assert (r := noise_cdf_range i). assert (up := noise_cdf_up i). nra.
  - destruct cases as [-> | [-> | ->]].
    + apply shrink. assert (r := noise_cdf_range (j - 1)). lra.
    + assert (r := noise_cdf_range (j - 1 - 1)). assert (up := noise_cdf_up (j - 1)). nra.
    + apply noise_rest_down.
  - apply noise_ratio. unfold i, j. lia.
Qed.

(** Moving it by [n] steps costs n factors. *)
Lemma geometric_ratio n centre centre' M k : (Z.abs (centre - centre') <= Z.of_nat n)%Z ->
  q ^ n * geometric_mass q centre' M k <= geometric_mass q centre M k.
Proof.
  revert centre'. induction n as [|n IH]; intros centre' near.
  - replace centre' with centre by lia. simpl. lra.
  - set (between := (if centre <? centre' then centre' - 1 else if centre' <? centre then centre' + 1 else centre)%Z).
    assert (near1 : (Z.abs (between - centre') <= 1 /\ Z.abs (centre - between) <= Z.of_nat n)%Z).
    { unfold between. destruct (Z.ltb_spec centre centre'), (Z.ltb_spec centre' centre); lia. }
    specialize (IH between (proj2 near1)).
    assert (one := geometric_step between centre' M k (proj1 near1)).
    assert (p := pow_pos n). simpl. nra.
Qed.

End Noise.

(** On a lattice on which neighbours are at most [n] steps apart, noise of rate epsilon / n is
    epsilon-differentially private, clamped or not. *)
Theorem geometric_private eps n centre centre' M : 0 < eps -> (0 < n)%nat ->
  (Z.abs (centre - centre') <= Z.of_nat n)%Z ->
  let q := exp (- (eps / INR n)) in within eps (geometric_law q centre M) (geometric_law q centre' M).
Proof.
  intros pos n0 near q. assert (N : 0 < INR n) by now apply lt_0_INR.
  assert (q01 : 0 < q < 1).
  { unfold q. split; [apply exp_pos|]. rewrite <- exp_0. apply exp_increasing.
    assert (0 < eps / INR n) by now apply Rdiv_lt_0_compat. lra. }
  assert (cost : q ^ n * exp eps = 1).
  { assert (powers : forall m, q ^ m = exp (- (INR m * (eps / INR n)))).
    { induction m as [|m IH]; [simpl; now rewrite Rmult_0_l, Ropp_0, exp_0|].
      simpl pow. rewrite IH. unfold q. rewrite <- exp_plus. f_equal. rewrite S_INR. ring. }
    rewrite powers, <- exp_plus. replace (_ + eps) with 0; [apply exp_0 | field; lra]. }
  apply within_of_outcomes; auto. intros k _. simpl.
  assert (ratio := geometric_ratio q q01 n centre' centre M k ltac:(lia)).
  assert (e0 := exp_pos eps).
  replace (geometric_mass q centre M k) with (exp eps * (q ^ n * geometric_mass q centre M k)).
  - apply Rmult_le_compat_l; lra.
  - rewrite <- Rmult_assoc, (Rmult_comm (exp eps)), cost. ring.
Qed.
