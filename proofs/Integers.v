(** The draw where floats cannot decide: brackets in whole numbers ([HazardLaw._is_below] in hazard.py). *)
From Coq Require Import Reals Lra Lia List ZArith.
From DP Require Import Constants Laws HazardLaw HazardRelease Margin.
Open Scope R_scope.

(** ** Definitions *)

(** Quotients of whole numbers, rounded down and up. *)
Definition down (n d : Z) : Z := (n / d)%Z.
Definition up (n d : Z) : Z := (- (- n / d))%Z.
Definition rounded (is_up : bool) : Z -> Z -> Z := if is_up then up else down.

Section Integers.

(** q = num / den; everything below is a whole number of 2^-bits. *)
Variables (num den : Z) (c : nat) (counts : nat -> nat) (p : nat) (bits : Z).

Definition one : Z := (2 ^ bits)%Z.

(** [_exact_runs]: powers of q and of 1/q, each from the one before; weights by run; sums before each run. *)
Fixpoint powers (is_up : bool) (n d : Z) (j : nat) : Z :=
  match j with O => one | S j => rounded is_up (powers is_up n d j * n) d end.
Definition int_weight (is_up : bool) (i : nat) : Z :=
  if (i <=? c)%nat then powers is_up num den (S c - i) else powers is_up den num (i - S c).
Fixpoint int_before (is_up : bool) (r : nat) : Z :=
  match r with O => 0 | S r => int_before is_up r + Z.of_nat (counts r) * int_weight is_up r end.

(** [_is_below] and [_exact_reached]; [tail] / ([tail] + p) is H at the peak. *)
Definition int_level (is_up : bool) (r m : nat) : Z := (int_before is_up r + Z.of_nat m * int_weight is_up r)%Z.
Definition int_peak : Z := (256 * one)%Z.
Definition int_h (is_up : bool) (level : Z) : Z :=
  let t := Z.of_nat tail in let all := (t + Z.of_nat p)%Z in
  if (level <=? int_peak)%Z
  then rounded is_up (t * level ^ Z.of_nat p * one) (all * int_peak ^ Z.of_nat p)
  else (one - rounded (negb is_up) (Z.of_nat p * int_peak ^ t * one) (all * level ^ t))%Z.

(** ** Facts *)

Hypothesis num_den : (0 < num <= den)%Z.
Hypothesis bits_nonneg : (0 <= bits)%Z.
Hypothesis p_pos : (1 <= p)%nat.

Let q : R := IZR num / IZR den.

(** A whole number [z] of 2^-bits is on the side of [a] that it should be on. *)
Definition side (is_up : bool) (z : Z) (a : R) : Prop := if is_up then a <= IZR z else IZR z <= a.

Lemma down_le n d : (0 < d)%Z -> IZR (down n d) <= IZR n / IZR d.
Proof.
  intros d0. assert (D := IZR_lt _ _ d0). apply Rmult_le_reg_r with (IZR d); [auto|].
  replace (IZR n / IZR d * IZR d) with (IZR n) by (field; lra).
  unfold down. rewrite <- mult_IZR. apply IZR_le. rewrite Z.mul_comm. now apply Z.mul_div_le.
Qed.

Lemma up_ge n d : (0 < d)%Z -> IZR n / IZR d <= IZR (up n d).
Proof.
  intros d0. assert (le := down_le (- n) d d0). unfold up, down in *. rewrite opp_IZR in *.
  replace (- IZR n / IZR d) with (- (IZR n / IZR d)) in le by (unfold Rdiv; ring). lra.
Qed.

Lemma rounded_side is_up n d a : (0 < d)%Z -> side is_up n a -> side is_up (rounded is_up n d) (a / IZR d).
Proof.
  intros d0. assert (D := IZR_lt _ _ d0). assert (i0 : 0 < / IZR d) by now apply Rinv_0_lt_compat.
  unfold rounded, side. destruct is_up; intros le.
  - apply Rle_trans with (2 := up_ge n d d0). unfold Rdiv. apply Rmult_le_compat_r; lra.
  - apply Rle_trans with (1 := down_le n d d0). unfold Rdiv. apply Rmult_le_compat_r; lra.
Qed.

Lemma side_scaled is_up z a k : (0 <= k)%Z -> side is_up z a -> side is_up (z * k) (a * IZR k).
Proof.
  intros k0. apply IZR_le in k0. unfold side.
  destruct is_up; intros le; rewrite mult_IZR; now apply Rmult_le_compat_r.
Qed.

Lemma side_plus is_up z a z' a' : side is_up z a -> side is_up z' a' -> side is_up (z + z') (a + a').
Proof. unfold side. destruct is_up; intros le le'; rewrite plus_IZR; lra. Qed.

Lemma one_pos : (0 < one)%Z.
Proof. unfold one. now apply Z.pow_pos_nonneg. Qed.

Lemma powers_side is_up n d j : (0 < n)%Z -> (0 < d)%Z ->
  side is_up (powers is_up n d j) ((IZR n / IZR d) ^ j * IZR one).
Proof.
  intros n0 d0. assert (D := IZR_lt _ _ d0). induction j as [|j IH].
  - simpl. rewrite Rmult_1_l. unfold side. destruct is_up; lra.
  - cbn [powers]. replace ((IZR n / IZR d) ^ S j * IZR one) with ((IZR n / IZR d) ^ j * IZR one * IZR n / IZR d)
      by (simpl; field; lra).
    apply rounded_side; auto. apply side_scaled; [lia | auto].
Qed.

Lemma weight_side is_up i : side is_up (int_weight is_up i) (exact_weight q c i * IZR one).
Proof.
  destruct num_den as [n0 le]. assert (d0 : (0 < den)%Z) by lia.
  assert (N := IZR_lt _ _ n0). assert (D := IZR_lt _ _ d0). unfold int_weight, exact_weight.
  destruct (Nat.leb_spec i c) as [low | high].
  - replace (Z.of_nat (S c) - Z.of_nat i)%Z with (Z.of_nat (S c - i)) by lia. rewrite <- pow_powerRZ.
    now apply powers_side.
  - replace (Z.of_nat (S c) - Z.of_nat i)%Z with (- Z.of_nat (i - S c))%Z by lia.
    rewrite powerRZ_neg', <- pow_powerRZ, <- pow_inv.
    replace (/ q) with (IZR den / IZR num) by (unfold q; field; lra).
    now apply powers_side.
Qed.

Lemma level_side is_up r m : side is_up (int_level is_up r m) (exact_level q c counts r m * peak * IZR one).
Proof.
  assert (before : forall r, side is_up (int_before is_up r) (exact_before q c counts r * IZR one)).
  { induction r0 as [|i IH]; cbn [int_before exact_before].
    - unfold side. destruct is_up; lra.
    - rewrite Rmult_plus_distr_r. apply side_plus; auto. rewrite Z.mul_comm.
      replace (INR (counts i) * exact_weight q c i * IZR one)
        with (exact_weight q c i * IZR one * IZR (Z.of_nat (counts i)))
        by (rewrite <- INR_IZR_INZ; ring).
      apply side_scaled; [lia | apply weight_side]. }
  unfold int_level, exact_level.
  replace ((exact_before q c counts r + INR m * exact_weight q c r) / peak * peak * IZR one) with
    (exact_before q c counts r * IZR one + exact_weight q c r * IZR one * IZR (Z.of_nat m))
    by (rewrite <- INR_IZR_INZ; unfold peak; field).
  apply side_plus; auto. rewrite Z.mul_comm. apply side_scaled; [lia | apply weight_side].
Qed.

(** [_exact_reached] rounds H of a whole number of 2^-bits down or up. *)
Lemma h_side is_up level : (0 <= level)%Z ->
  side is_up (int_h is_up level) (H p tail (IZR level / IZR int_peak) * IZR one).
Proof.
  intros level0. assert (o := one_pos). assert (O := IZR_lt _ _ o).
  assert (P0 : (0 < int_peak)%Z) by (unfold int_peak; lia). assert (P := IZR_lt _ _ P0).
  assert (L := IZR_le _ _ level0). assert (t0 : 0 < INR tail) by (apply lt_0_INR; unfold tail; lia).
  assert (p0 : 0 < INR p) by (apply lt_0_INR; lia).
  assert (all : IZR (Z.of_nat tail + Z.of_nat p) = INR tail + INR p) by now rewrite plus_IZR, <- !INR_IZR_INZ.
  unfold int_h, H, share_below. destruct (Z.leb_spec level int_peak) as [low | high].
  - destruct (Rle_dec (IZR level / IZR int_peak) 1) as [_ | no].
    2: { exfalso. apply no. apply IZR_le in low. apply Rmult_le_reg_r with (IZR int_peak); auto.
    field_simplify; lra. }
    replace (INR tail / (INR tail + INR p) * (IZR level / IZR int_peak) ^ p * IZR one) with
      (IZR (Z.of_nat tail * level ^ Z.of_nat p * one) / IZR ((Z.of_nat tail + Z.of_nat p) * int_peak ^ Z.of_nat p)).
    + apply rounded_side; [|unfold side; destruct is_up; lra]. apply Z.mul_pos_pos; [lia|].
      now apply Z.pow_pos_nonneg; lia.
    + rewrite !mult_IZR, all, <- !pow_IZR, <- INR_IZR_INZ. unfold Rdiv. rewrite Rpow_mult_distr, pow_inv.
      field. split; [apply pow_nonzero|]; lra.
  - assert (HL := IZR_lt _ _ high).
    destruct (Rle_dec (IZR level / IZR int_peak) 1) as [yes | _].
    { exfalso. apply Rmult_le_compat_r with (r := IZR int_peak) in yes; [|lra].
      replace (IZR level / IZR int_peak * IZR int_peak) with (IZR level) in yes by (field; lra). lra. }
    replace ((1 - (1 - INR tail / (INR tail + INR p)) * (/ (IZR level / IZR int_peak)) ^ tail) * IZR one) with
      (IZR one - IZR (Z.of_nat p * int_peak ^ Z.of_nat tail * one) / IZR ((Z.of_nat tail + Z.of_nat p)
        * level ^ Z.of_nat tail)).
    + assert (d0 : (0 < (Z.of_nat tail + Z.of_nat p) * level ^ Z.of_nat tail)%Z).
      { apply Z.mul_pos_pos; [lia|]. apply Z.pow_pos_nonneg; lia. }
      set (n := (Z.of_nat p * int_peak ^ Z.of_nat tail * one)%Z) in *.
      assert (other := rounded_side (negb is_up) n _ (IZR n) d0 ltac:(unfold side; destruct (negb is_up); lra)).
      unfold side in *. destruct is_up; cbn [negb] in *; rewrite minus_IZR; lra.
    + rewrite !mult_IZR, all, <- !pow_IZR, <- INR_IZR_INZ.
      replace (/ (IZR level / IZR int_peak)) with (IZR int_peak * / IZR level) by (field; lra).
      rewrite Rpow_mult_distr, pow_inv. field. split; [apply pow_nonzero|]; lra.
Qed.

Lemma level_nonneg is_up r m : (0 <= int_level is_up r m)%Z.
Proof.
  destruct num_den as [n0 le]. assert (o := one_pos).
  assert (nonneg : forall n d j, (0 < n)%Z -> (0 < d)%Z -> (0 <= powers is_up n d j)%Z).
  { intros n d j n1 d1. induction j as [|j IH]; cbn [powers]; [lia|]. unfold rounded, up, down.
    destruct is_up; [|apply Z.div_pos; lia].
    assert (neg : (- (powers true n d j * n) / d <= 0)%Z) by (apply Z.div_le_upper_bound; lia). lia. }
  assert (w : forall i, (0 <= int_weight is_up i)%Z).
  { intros i. unfold int_weight. destruct (i <=? c)%nat; apply nonneg; lia. }
  assert (b : forall i, (0 <= int_before is_up i)%Z).
  { induction i as [|i IH]; cbn [int_before]; [lia|]. specialize (w i). lia. }
  unfold int_level. specialize (w r). specialize (b r). lia.
Qed.

(** So where the first [bits] bits of U decide in whole numbers, they decide rightly: output [m] of run [r] has
    the exact level [exact_level r m]. *)
Theorem integers_are_right r m word U : IZR word / IZR one <= U < (IZR word + 1) / IZR one ->
  let exact := H p tail (exact_level q c counts r m) in
  ((word + 1 <= int_h false (int_level false r m))%Z -> U < exact) /\
  ((int_h true (int_level true r m) <= word)%Z -> exact <= U).
Proof.
  intros [low high] exact. assert (o := one_pos). assert (O := IZR_lt _ _ o).
  assert (P : IZR int_peak = peak * IZR one) by (unfold int_peak; rewrite mult_IZR; unfold peak; ring).
  assert (t1 : (1 <= tail)%nat) by (unfold tail; lia).
  assert (z0 : forall b, 0 <= IZR (int_level b r m)) by (intros b; apply IZR_le, level_nonneg).
  assert (quotient : forall a, a * peak * IZR one / IZR int_peak = a) by (intros a; rewrite P; unfold peak;
    field; lra).
  assert (i0 : 0 < / IZR int_peak) by (rewrite P; apply Rinv_0_lt_compat, Rmult_lt_0_compat; [unfold peak|]; lra).
  split; intros decided; apply IZR_le in decided; unfold exact;
    rewrite <- (quotient (exact_level q c counts r m)).
  - assert (h := h_side false _ (level_nonneg false r m)). assert (l := level_side false r m). unfold side in h, l.
    assert (grow := H_increasing p tail p_pos t1 (IZR (int_level false r m) / IZR int_peak)
      (exact_level q c counts r m * peak * IZR one / IZR int_peak)
      ltac:(apply Rmult_le_pos; [apply z0 | lra]) ltac:(apply Rmult_le_compat_r; [lra | exact l])).
    rewrite plus_IZR in decided. apply Rlt_le_trans with (1 := high).
    apply Rmult_le_reg_r with (IZR one); auto.
    replace ((IZR word + 1) / IZR one * IZR one) with (IZR word + 1) by (field; lra).
    assert (scaled := Rmult_le_compat_r (IZR one) _ _ ltac:(lra) grow). lra.
  - assert (h := h_side true _ (level_nonneg true r m)). assert (l := level_side true r m). unfold side in h, l.
    assert (x0 : 0 <= exact_level q c counts r m * peak * IZR one).
    { assert (low_side := level_side false r m). unfold side in low_side. specialize (z0 false). lra. }
    assert (grow := H_increasing p tail p_pos t1 (exact_level q c counts r m * peak * IZR one / IZR int_peak)
      (IZR (int_level true r m) / IZR int_peak)
      ltac:(apply Rmult_le_pos; lra) ltac:(apply Rmult_le_compat_r; [lra | exact l])).
    apply Rle_trans with (2 := low).
    apply Rmult_le_reg_r with (IZR one); auto. replace (IZR word / IZR one * IZR one) with (IZR word) by (field; lra).
    assert (scaled := Rmult_le_compat_r (IZR one) _ _ ltac:(lra) grow). lra.
Qed.

End Integers.
