(** The law H of hazard selection, and what happens to its density when hazards change (theory, 3). *)
From Coq Require Import Reals Lra Lia.
From Coquelicot Require Import Coquelicot.
Open Scope R_scope.

Section Law.

(** [p] is the power of H at 0, [t] the index of its tail. Levels are in units of z0: u = z / z0. *)
Variables p t : nat.
Hypothesis p_pos : (1 <= p)%nat.
Hypothesis t_pos : (1 <= t)%nat.

(** A = H(z0). *)
Definition share_below : R := INR t / (INR t + INR p).

(** H(u) = A u^p up to 1, and 1 - (1-A) u^-t from there on. *)
Definition H (u : R) : R :=
  if Rle_dec u 1 then share_below * u ^ p else 1 - (1 - share_below) * (/ u) ^ t.

(** Its density, up to a factor the smaller one of u^(p-1) and u^-(t+1). *)
Definition density (u : R) : R :=
  INR t * INR p / (INR t + INR p) * (if Rle_dec u 1 then u ^ (p - 1) else (/ u) ^ (t + 1)).

(** ** H is differentiable, also where its two parts meet, and its derivative is the density. *)

Let tp : 0 < INR t /\ 0 < INR p.
Proof. split; apply lt_0_INR; lia. Qed.

Lemma share_below_bounds : 0 < share_below < 1.
Proof.
  destruct tp as [t0 p0]. unfold share_below. split.
  - apply Rdiv_lt_0_compat; lra.
  - apply Rmult_lt_reg_r with (INR t + INR p); [lra|]. field_simplify; lra.
Qed.

Lemma glued (f g : R -> R) (x d : R) :
  f 1 = g 1 -> (x <= 1 -> is_derive f x d) -> (1 <= x -> is_derive g x d) ->
  is_derive (fun u => if Rle_dec u 1 then f u else g u) x d.
Proof.
  intros meet df dg. apply is_derive_Reals. intros eps eps_pos.
  assert (away : forall F, is_derive F x d -> exists delta : posreal, forall h,
    h <> 0 -> Rabs h < delta -> Rabs ((F (x + h) - F x) / h - d) < eps).
  { intros F dF. apply is_derive_Reals in dF. exact (dF eps eps_pos). }
  destruct (Rtotal_order x 1) as [lt | [-> | gt]].
  - destruct (away f) as [delta near]; [apply df; lra|].
    assert (pos : 0 < Rmin delta (1 - x)) by (apply Rmin_pos; [apply cond_pos | lra]).
    exists (mkposreal _ pos). simpl. intros h nonzero small.
    assert (Rabs h < delta) by (apply Rlt_le_trans with (1 := small); apply Rmin_l).
    assert (Rabs h < 1 - x) by (apply Rlt_le_trans with (1 := small); apply Rmin_r).
    assert (h <= Rabs h) by apply Rle_abs.
    destruct (Rle_dec (x + h) 1), (Rle_dec x 1); try lra. now apply near.
  - destruct (away f) as [delta near]; [apply df; lra|].
    destruct (away g) as [delta' near']; [apply dg; lra|].
    assert (pos : 0 < Rmin delta delta') by (apply Rmin_pos; apply cond_pos).
    exists (mkposreal _ pos). simpl. intros h nonzero small.
    assert (Rabs h < delta) by (apply Rlt_le_trans with (1 := small); apply Rmin_l).
    assert (Rabs h < delta') by (apply Rlt_le_trans with (1 := small); apply Rmin_r).
    destruct (Rle_dec 1 1); [|lra].
    destruct (Rle_dec (1 + h) 1); [now apply near | rewrite meet; now apply near'].
  - destruct (away g) as [delta near]; [apply dg; lra|].
    assert (pos : 0 < Rmin delta (x - 1)) by (apply Rmin_pos; [apply cond_pos | lra]).
    exists (mkposreal _ pos). simpl. intros h nonzero small.
    assert (Rabs h < delta) by (apply Rlt_le_trans with (1 := small); apply Rmin_l).
    assert (Rabs h < x - 1) by (apply Rlt_le_trans with (1 := small); apply Rmin_r).
    assert (- h <= Rabs h) by (rewrite <- Rabs_Ropp; apply Rle_abs).
    destruct (Rle_dec (x + h) 1), (Rle_dec x 1); try lra. now apply near.
Qed.

Theorem H_derivative (u : R) : is_derive H u (density u).
Proof.
  destruct tp as [t0 p0]. apply glued.
  - rewrite Rinv_1, !pow1. ring.
  - intros le. unfold density. destruct (Rle_dec u 1); [|easy].
    auto_derive; auto. unfold share_below. replace (Init.Nat.pred p) with (p - 1)%nat by lia. field. lra.
  - intros ge.
    assert (same : density u = INR t * INR p / (INR t + INR p) * (/ u) ^ (t + 1)).
    { unfold density. destruct (Rle_dec u 1); auto. replace u with 1 by lra. now rewrite Rinv_1, !pow1. }
    rewrite same. auto_derive; [lra|]. unfold share_below.
    replace (t + 1)%nat with (2 + Init.Nat.pred t)%nat by lia. rewrite pow_add. simpl. field. lra.
Qed.

Lemma density_min (u : R) : 0 < u ->
  density u = INR t * INR p / (INR t + INR p) * Rmin (u ^ (p - 1)) ((/ u) ^ (t + 1)).
Proof.
  intros pos. unfold density. f_equal. destruct (Rle_dec u 1) as [le | gt].
  - rewrite Rmin_left; auto. apply Rle_trans with 1.
    + rewrite <- (pow1 (p - 1)). apply pow_incr. lra.
    + apply pow_R1_Rle. rewrite <- Rinv_1. apply Rinv_le_contravar; lra.
  - rewrite Rmin_right; auto. apply Rle_trans with 1.
    + rewrite <- (pow1 (t + 1)). apply pow_incr. split.
      * left. apply Rinv_0_lt_compat. lra.
      * rewrite <- Rinv_1. apply Rinv_le_contravar; lra.
    + apply pow_R1_Rle. lra.
Qed.

Lemma density_nonneg (u : R) : 0 <= u -> 0 <= density u.
Proof.
  intros pos. destruct tp. unfold density. apply Rmult_le_pos.
  - apply Rlt_le, Rdiv_lt_0_compat; [apply Rmult_lt_0_compat|]; lra.
  - destruct (Rle_dec u 1); apply pow_le; auto. left. apply Rinv_0_lt_compat. lra.
Qed.

(** ** 1. The density ratio *)

(** Where the hazard so far grows by a factor up to [r], the density grows by a factor up to r^(p-1) ... *)
Lemma density_up (r u u' : R) : 1 <= r -> 0 < u -> u <= u' <= r * u ->
  density u' <= r ^ (p - 1) * density u.
Proof.
  intros r1 pos [le le']. destruct tp. rewrite !density_min by lra.
  set (c := INR t * INR p / (INR t + INR p)).
  assert (c0 : 0 < c) by (apply Rdiv_lt_0_compat; [apply Rmult_lt_0_compat|]; lra).
  replace (r ^ (p - 1) * (c * Rmin (u ^ (p - 1)) ((/ u) ^ (t + 1))))
    with (c * (r ^ (p - 1) * Rmin (u ^ (p - 1)) ((/ u) ^ (t + 1)))) by ring.
  apply Rmult_le_compat_l; [lra|].
  assert (big : 1 <= r ^ (p - 1)) by now apply pow_R1_Rle.
  assert (0 < (/ u) ^ (t + 1)) by (apply pow_lt, Rinv_0_lt_compat; auto).
  assert (first : u' ^ (p - 1) <= r ^ (p - 1) * u ^ (p - 1))
    by (rewrite <- Rpow_mult_distr; apply pow_incr; lra).
  assert (second : (/ u') ^ (t + 1) <= (/ u) ^ (t + 1)).
  { apply pow_incr. split; [left; apply Rinv_0_lt_compat; lra | apply Rinv_le_contravar; lra]. }
  unfold Rmin. destruct (Rle_dec (u' ^ (p - 1)) _), (Rle_dec (u ^ (p - 1)) _); nra.
Qed.

(** ... and falls by a factor up to r^(t+1). *)
Lemma density_down (r u u' : R) : 1 <= r -> 0 < u -> u <= u' <= r * u ->
  density u <= r ^ (t + 1) * density u'.
Proof.
  intros r1 pos [le le']. destruct tp. rewrite !density_min by lra.
  set (c := INR t * INR p / (INR t + INR p)).
  assert (c0 : 0 < c) by (apply Rdiv_lt_0_compat; [apply Rmult_lt_0_compat|]; lra).
  replace (r ^ (t + 1) * (c * Rmin (u' ^ (p - 1)) ((/ u') ^ (t + 1))))
    with (c * (r ^ (t + 1) * Rmin (u' ^ (p - 1)) ((/ u') ^ (t + 1)))) by ring.
  apply Rmult_le_compat_l; [lra|].
  assert (big : 1 <= r ^ (t + 1)) by now apply pow_R1_Rle.
  assert (0 < u ^ (p - 1)) by (apply pow_lt; auto).
  assert (first : u ^ (p - 1) <= u' ^ (p - 1)) by (apply pow_incr; lra).
  assert (second : (/ u) ^ (t + 1) <= r ^ (t + 1) * (/ u') ^ (t + 1)).
  { rewrite <- Rpow_mult_distr. apply pow_incr. split; [left; now apply Rinv_0_lt_compat|].
    apply Rmult_le_reg_r with u; auto. rewrite Rinv_l by lra.
    apply Rmult_le_reg_r with u'; [lra|]. field_simplify; lra. }
  unfold Rmin. destruct (Rle_dec (u ^ (p - 1)) _), (Rle_dec (u' ^ (p - 1)) _); nra.
Qed.

(** Monotonic metrics: the hazard [w] and what it adds up to, [u], both grow, by factors up to [r]. Then the
    density of the crossing point changes by at most r^max(p, t+1), either way. *)
Theorem density_ratio_monotonic (r u u' w w' : R) :
  1 <= r -> 0 < u -> 0 < w -> u <= u' <= r * u -> w <= w' <= r * w ->
  density u' * w' <= r ^ max p (t + 1) * (density u * w) /\
  density u * w <= r ^ max p (t + 1) * (density u' * w').
Proof.
  intros r1 u0 w0 Hu Hw.
  assert (d0 := density_nonneg u (Rlt_le _ _ u0)).
  assert (d0' : 0 <= density u') by (apply density_nonneg; lra).
  assert (up := density_up r u u' r1 u0 Hu). assert (down := density_down r u u' r1 u0 Hu). split.
  - apply Rle_trans with (r ^ p * (density u * w)).
    + apply Rle_trans with (r ^ (p - 1) * density u * (r * w)); [apply Rmult_le_compat; lra|].
      right. replace p with (S (p - 1)) at 2 by lia. simpl. ring.
    + apply Rmult_le_compat_r; [nra|]. apply Rle_pow; [auto | lia].
  - apply Rle_trans with (r ^ (t + 1) * (density u' * w')).
    + rewrite <- Rmult_assoc. apply Rmult_le_compat; lra.
    + apply Rmult_le_compat_r; [nra|]. apply Rle_pow; [auto | lia].
Qed.

(** Any metric: the two may change either way, each by a factor up to [r]. Then the density changes by at
    most r^max(p, t+2). *)
Theorem density_ratio_general (r u u' w w' : R) :
  1 <= r -> 0 < u -> 0 < u' -> 0 < w -> u' <= r * u -> u <= r * u' -> w' <= r * w ->
  density u' * w' <= r ^ max p (t + 2) * (density u * w).
Proof.
  intros r1 u0 u0' w0 up down Hw.
  assert (d0 := density_nonneg u (Rlt_le _ _ u0)).
  assert (d0' := density_nonneg u' (Rlt_le _ _ u0')).
  assert (steps : density u' <= r ^ (max p (t + 2) - 1) * density u).
  { destruct (Rle_dec u u') as [le | gt].
    - apply Rle_trans with (1 := density_up r u u' r1 u0 (conj le up)).
      apply Rmult_le_compat_r; auto. apply Rle_pow; [auto | lia].
    - apply Rle_trans with (r ^ (t + 1) * density u).
      + apply density_down; auto. split; lra.
      + apply Rmult_le_compat_r; auto. apply Rle_pow; [auto | lia]. }
  apply Rle_trans with (density u' * (r * w)); [apply Rmult_le_compat_l; lra|].
  apply Rle_trans with (r ^ (max p (t + 2) - 1) * density u * (r * w)).
  - apply Rmult_le_compat_r; [nra | auto].
  - right. replace (max p (t + 2)) with (S (max p (t + 2) - 1)) at 2 by lia. simpl. ring.
Qed.

(** ** From densities to cells, without an integral: the mean value theorem *)

Lemma cell_ratio (c a w a' w' : R) : 0 <= a -> 0 < w -> 0 <= a' -> 0 < w' ->
  (forall x, 0 < x < 1 -> density (a + x * w) * w <= c * (density (a' + x * w') * w')) ->
  H (a + w) - H a <= c * (H (a' + w') - H a').
Proof.
  intros a0 w0 a0' w0' le.
  set (G x := c * H (a' + x * w') - H (a + x * w)).
  set (dG x := c * (density (a' + x * w') * w') - density (a + x * w) * w).
  assert (moved : forall b v x, is_derive (fun x => H (b + x * v)) x (density (b + x * v) * v)).
  { intros b v x. rewrite Rmult_comm. apply (is_derive_comp H (fun x => b + x * v)).
    - apply H_derivative.
    - auto_derive; auto. ring. }
  destruct (MVT_cor2 G dG 0 1) as (x & rise & inside); [lra| |].
  - intros x _. apply is_derive_Reals. unfold G, dG.
    apply (is_derive_minus (fun x => c * H (a' + x * w')) (fun x => H (a + x * w))); [|apply moved].
    apply is_derive_scal. apply moved.
  - unfold G, dG in rise. specialize (le x inside).
    rewrite !Rmult_1_l, !Rmult_0_l, !Rplus_0_r in rise. lra.
Qed.

Lemma H_0 : H 0 = 0.
Proof. unfold H. destruct (Rle_dec 0 1); [|lra]. rewrite pow_i; [ring | lia]. Qed.

Lemma H_increasing (u u' : R) : 0 <= u -> u <= u' -> H u <= H u'.
Proof.
  intros u0 [lt | ->]; [|lra].
  destruct (MVT_cor2 H density u u' lt) as (x & rise & inside).
  - intros x _. apply is_derive_Reals, H_derivative.
  - assert (0 <= density x) by (apply density_nonneg; lra). nra.
Qed.

Lemma H_below_1 (u : R) : 0 <= u -> H u <= 1.
Proof.
  intros u0. destruct share_below_bounds as [s0 s1]. unfold H. destruct (Rle_dec u 1) as [le | gt].
  - assert (u ^ p <= 1) by (rewrite <- (pow1 p); apply pow_incr; lra).
    assert (0 <= u ^ p) by (apply pow_le; lra). nra.
  - assert (0 <= (/ u) ^ t) by (apply pow_le; left; apply Rinv_0_lt_compat; lra). nra.
Qed.

(** The last output: 1 - H falls by a factor of at most r^t while its argument grows by up to [r]. *)
Lemma rest_down (r u u' : R) : 1 <= r -> 0 <= u -> u <= u' <= r * u -> 1 - H u <= r ^ t * (1 - H u').
Proof.
  intros r1 u0 [le le']. destruct tp as [t0 p0].
  assert (big : 1 <= r ^ t) by now apply pow_R1_Rle.
  assert (rest0 : forall v, 0 <= v -> 0 <= 1 - H v) by (intros v v0; assert (q := H_below_1 v v0); lra).
  destruct u0 as [pos | <-].
  2: { replace u' with 0 by lra. rewrite H_0. lra. }
  assert (grow : u ^ t * (1 - H u) <= u' ^ t * (1 - H u')).
  { destruct le as [lt | <-]; [|lra].
    set (D v := v ^ t * (1 - H v)).
    set (dD v := INR t * v ^ (t - 1) * (1 - H v) - v ^ t * density v).
    destruct (MVT_cor2 D dD u u' lt) as (x & rise & inside).
    - intros v _. apply is_derive_Reals. unfold D, dD.
      evar_last.
      + apply (is_derive_mult (fun v => v ^ t) (fun v => 1 - H v)); [| | apply Rmult_comm].
        * apply (is_derive_pow (fun v => v)). apply is_derive_id.
        * apply (is_derive_minus (fun _ => 1) H); [apply is_derive_const | apply H_derivative].
      + unfold plus, mult, minus, opp, zero, one; simpl. unfold mult, plus, one; simpl.
        replace (Init.Nat.pred t) with (t - 1)%nat by lia. ring.
    - assert (rise0 : 0 <= dD x); [|unfold D in rise; nra].
      assert (x0 : 0 < x) by lra. unfold dD, H, density.
      assert (split_t : x ^ t = x * x ^ (t - 1)) by (replace t with (S (t - 1)) at 1 by lia; reflexivity).
      assert (pos_t : 0 <= x ^ (t - 1)) by (apply pow_le; lra).
      destruct (Rle_dec x 1) as [xle | xgt].
      + assert (split_p : x ^ p = x * x ^ (p - 1)) by (replace p with (S (p - 1)) at 1 by lia; reflexivity).
        assert (small : x ^ p <= 1) by (rewrite <- (pow1 p); apply pow_incr; lra).
        replace (INR t * x ^ (t - 1) * (1 - share_below * x ^ p) - _)
          with (INR t * x ^ (t - 1) * (1 - x ^ p)).
        * apply Rmult_le_pos; [apply Rmult_le_pos|]; lra.
        * unfold share_below. rewrite split_t, split_p. field. lra.
      + assert (split_i : (/ x) ^ (t + 1) = / x * (/ x) ^ t) by (rewrite Nat.add_1_r; reflexivity).
        rewrite split_i, split_t. right. unfold share_below. field. lra. }
  apply Rmult_le_reg_l with (u ^ t); [now apply pow_lt|].
  apply Rle_trans with (1 := grow).
  replace (u ^ t * (r ^ t * (1 - H u'))) with ((r * u) ^ t * (1 - H u')) by (rewrite Rpow_mult_distr; ring).
  apply Rmult_le_compat_r; [apply rest0; lra|]. apply pow_incr. lra.
Qed.

End Law.
