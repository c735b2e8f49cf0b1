(** The floats of a draw: where they decide, exact arithmetic would decide the same ([HazardLaw._parts] and
    [HazardLaw._certain] in hazard.py). Floats have 53 bits here and no smallest or largest number: what
    underflow and overflow can add is argued on paper, in the docstring of [HazardLaw]. *)
From Coq Require Import Reals Lra Lia List ZArith.
From Flocq Require Import Core.
From Flocq Require Import Relative.
From DP Require Import Constants Laws HazardLaw HazardRelease.
Open Scope R_scope.

(** ** Definitions *)

Definition u : R := / 2 ^ 53.

(** Rounding to nearest, ties to even. *)
Definition fl : R -> R := round radix2 (FLX_exp 53) ZnearestE.

(** [near m a b]: b is what [m] roundings can make of a. *)
Definition near (m : nat) (a b : R) : Prop := 0 <= a /\ 0 <= b /\ b <= (/ (1 - u)) ^ m * a /\ a <= (/ (1 - u))
  ^ m * b.

Section Program.

(** With c ranks there are 2 c + 2 runs; [counts i] outputs lie in run i, of level i - (c + 1). *)
Variables (q : R) (c : nat) (counts : nat -> nat) (p : nat).

(** The powers of q: a running product, and reciprocals above the metric. *)
Fixpoint falling (j : nat) : R := match j with O => q | S j => fl (falling j * q) end.
Definition float_weight (i : nat) : R :=
  if (i <=? c)%nat then falling (c - i) else if (i =? S c)%nat then 1 else fl (1 / falling (i - c - 2)).
Definition exact_weight (i : nat) : R := powerRZ q (Z.of_nat (S c) - Z.of_nat i).

(** Lambda before run r, and then up to output number m of that run, in units of z0. *)
Fixpoint float_before (r : nat) : R :=
  match r with
  | O => 0
  | S r' => match r' with
            | O => fl (INR (counts 0) * float_weight 0)
            | _ => fl (float_before r' + fl (INR (counts r') * float_weight r'))
            end
  end.
Fixpoint exact_before (r : nat) : R :=
  match r with O => 0 | S r => exact_before r + INR (counts r) * exact_weight r end.
Definition float_level (r m : nat) : R := fl (fl (float_before r + fl (INR m * float_weight r)) / peak).
Definition exact_level (r m : nat) : R := (exact_before r + INR m * exact_weight r) / peak.

(** a x x ... x, multiplied from left to right. *)
Fixpoint times (a x : R) (n : nat) : R := match n with O => a | S n => fl (times a x n * x) end.

(** [_parts]: H where the level is at most z0, and 1 - H beyond. *)
Definition float_below (x : R) : R := times (fl (share_below p tail)) x p.
Definition float_rest (x : R) : R := times (fl (1 - share_below p tail)) (fl (1 / x)) tail.

(** [_margin]: 8 (2 R + 16) 2^-53 for R = 2 c + 2 runs. *)
Definition margin : R := 8 * (2 * (2 * INR c + 2) + 16) * u.

(** One comparison of [_certain]: what is greater exceeds what is less by the margin, as floats see it. *)
Definition exceeds (greater less : R) : Prop := fl (fl (margin * greater) + / 2 ^ 63) < fl (greater - less).

(** The first 64 bits of U are [word]; u and v of the program. *)
Definition float_u (word : Z) : R := fl (IZR word) * / 2 ^ 64.
Definition float_v (word : Z) : R := fl (IZR (2 ^ 64 - word)) * / 2 ^ 64.

(** ** Roundings *)

Lemma u_small : 0 < u < / 10 ^ 15.
Proof. unfold u. split; [apply Rinv_0_lt_compat; lra | apply Rinv_lt_contravar; lra]. Qed.

Lemma fl_error x : Rabs (fl x - x) <= u * Rabs x.
Proof.
  assert (le := relative_error_N_FLX radix2 53 eq_refl (fun n => negb (Z.even n)) x).
  unfold fl. replace u with (/ 2 * bpow radix2 (- (53) + 1)); [exact le|].
  unfold u. simpl. lra.
Qed.

Lemma rho : 1 <= / (1 - u) /\ 0 < 1 - u.
Proof. assert (s := u_small). split; [|lra]. rewrite <- Rinv_1. apply Rinv_le_contravar; lra. Qed.

Lemma rho_pow m : 1 <= (/ (1 - u)) ^ m.
Proof. apply pow_R1_Rle, rho. Qed.

Lemma near_refl a : 0 <= a -> near 0 a a.
Proof. intros pos. unfold near. simpl. lra. Qed.

Lemma near_more m n a b : (m <= n)%nat -> near m a b -> near n a b.
Proof.
  intros le (a0 & b0 & up & down). repeat split; auto.
  - apply Rle_trans with (1 := up), Rmult_le_compat_r; auto. apply Rle_pow; [apply rho | auto].
  - apply Rle_trans with (1 := down), Rmult_le_compat_r; auto. apply Rle_pow; [apply rho | auto].
Qed.

Lemma near_fl m a b : near m a b -> near (S m) a (fl b).
Proof.
  intros (a0 & b0 & up & down). assert (s := u_small). assert (r := rho).
  assert (e := fl_error b). rewrite (Rabs_right b) in e by lra. apply Rabs_le_inv in e.
  set (rho := / (1 - u)) in *. assert (inv : rho * (1 - u) = 1) by (unfold rho; field; lra).
  assert (above : fl b <= rho * b) by nra. assert (below : b <= rho * fl b) by nra.
  assert (one : 0 <= rho ^ m) by (apply pow_le; lra).
  unfold near. fold rho. cbn [pow]. repeat split; auto; nra.
Qed.

Lemma near_mult m n a b a' b' : near m a b -> near n a' b' -> near (m + n) (a * a') (b * b').
Proof.
  intros (a0 & b0 & up & down) (a0' & b0' & up' & down').
  unfold near. rewrite !pow_add.
  repeat split; try (now apply Rmult_le_pos).
  - apply Rle_trans with ((/ (1 - u)) ^ m * a * ((/ (1 - u)) ^ n * a')); [apply Rmult_le_compat; auto | right; ring].
  - apply Rle_trans with ((/ (1 - u)) ^ m * b * ((/ (1 - u)) ^ n * b')); [apply Rmult_le_compat; auto | right; ring].
Qed.

Lemma near_scaled m a b d : 0 <= d -> near m a b -> near m (d * a) (d * b).
Proof. intros d0 close. apply (near_mult 0 m d d a b); [now apply near_refl | auto]. Qed.

Lemma near_inv m a b : 0 < a -> 0 < b -> near m a b -> near m (1 / a) (1 / b).
Proof.
  intros a0 b0 (_ & _ & up & down). unfold Rdiv. rewrite !Rmult_1_l.
  repeat split; try (left; now apply Rinv_0_lt_compat).
  - apply Rmult_le_reg_r with (a * b); [now apply Rmult_lt_0_compat|]. field_simplify; lra.
  - apply Rmult_le_reg_r with (a * b); [now apply Rmult_lt_0_compat|]. field_simplify; lra.
Qed.

Lemma near_plus m a b a' b' : near m a b -> near m a' b' -> near m (a + a') (b + b').
Proof. intros (a0 & b0 & up & down) (a0' & b0' & up' & down'). repeat split; lra. Qed.

Lemma near_pos m a b : near m a b -> 0 < a -> 0 < b.
Proof.
  intros (_ & b0 & _ & down) a0. destruct b0 as [|zero]; auto. rewrite <- zero, Rmult_0_r in down. lra.
Qed.

(** ** Lambda, after 3 c + 3 roundings *)

Hypothesis q01 : 0 < q <= 1.

Lemma falling_near j : near j (q ^ S j) (falling j).
Proof.
  induction j as [|j IH].
  - simpl. rewrite Rmult_1_r. apply near_refl. lra.
  - cbn [falling]. replace (q ^ S (S j)) with (q * q ^ S j) by (simpl; ring).
    apply near_fl. rewrite (Rmult_comm (falling j)). apply near_scaled; [lra | auto].
Qed.

Lemma weight_near i : (i <= 2 * c + 1)%nat -> near c (exact_weight i) (float_weight i).
Proof.
  intros le. unfold float_weight, exact_weight. destruct (Nat.leb_spec i c) as [low | high].
  - replace (Z.of_nat (S c) - Z.of_nat i)%Z with (Z.of_nat (S (c - i))) by lia.
    rewrite <- pow_powerRZ. apply near_more with (2 := falling_near (c - i)). lia.
  - destruct (Nat.eqb_spec i (S c)) as [-> | above].
    + rewrite Z.sub_diag. simpl. apply near_more with 0%nat; [lia|]. apply near_refl. lra.
    + replace (Z.of_nat (S c) - Z.of_nat i)%Z with (- Z.of_nat (S (i - c - 2)))%Z by lia.
      rewrite powerRZ_neg', <- pow_powerRZ. replace (/ q ^ _) with (1 / q ^ S (i - c - 2)) by (unfold Rdiv; ring).
      apply near_more with (S (i - c - 2)); [lia|].
      apply near_fl, near_inv; [apply pow_lt; lra | | apply falling_near].
      apply near_pos with (1 := falling_near _). apply pow_lt. lra.
Qed.

Lemma term_near m i : (i <= 2 * c + 1)%nat -> near (S c) (INR m * exact_weight i) (fl (INR m * float_weight i)).
Proof.
  intros le. apply near_fl, near_scaled; [apply pos_INR | now apply weight_near].
Qed.

Lemma before_near r : (r <= 2 * c + 1)%nat -> near (c + r) (exact_before r) (float_before r).
Proof.
  induction r as [|r IH]; intros le; [apply near_more with 0%nat; [lia | apply near_refl; simpl; lra]|].
  destruct r as [|r].
  - cbn [exact_before float_before]. rewrite Rplus_0_l. rewrite Nat.add_1_r. apply term_near. lia.
  - replace (exact_before (S (S r))) with (exact_before (S r) + INR (counts (S r)) * exact_weight (S r))
      by reflexivity.
    change (float_before (S (S r))) with (fl (float_before (S r) + fl (INR (counts (S r)) * float_weight (S r)))).
    replace (c + S (S r))%nat with (S (c + S r)) by lia. apply near_fl, near_plus; [apply IH; lia|].
    apply near_more with (S c); [lia | apply term_near; lia].
Qed.

Theorem level_near r m : (r <= 2 * c + 1)%nat -> near (3 * c + 4) (exact_level r m) (float_level r m).
Proof.
  intros le. unfold exact_level, float_level, Rdiv. replace (3 * c + 4)%nat with (S (3 * c + 3)) by lia.
  apply near_fl.
  rewrite !(Rmult_comm _ (/ peak)). apply near_scaled; [unfold peak; lra|].
  replace (3 * c + 3)%nat with (S (3 * c + 2)) by lia. apply near_fl, near_plus.
  - apply near_more with (2 := before_near r le). lia.
  - apply near_more with (S c); [lia | now apply term_near].
Qed.

(** ** H and 1 - H *)

Hypothesis p45 : (p = power_monotonic \/ p = power_general)%nat.

Let p1 : (1 <= p)%nat.
Proof. destruct p45 as [-> | ->]; unfold power_monotonic, power_general; lia. Qed.

Let t1 : (1 <= tail)%nat.
Proof. unfold tail. lia. Qed.

(** H grows by at most r^p while its argument grows by up to r. *)
Lemma H_up (r a b : R) : 1 <= r -> 0 < a -> a <= b <= r * a -> H p tail b <= r ^ p * H p tail a.
Proof.
  intros r1 a0 [le le'].
  assert (cell := cell_ratio p tail p1 t1 (r ^ p) 0 b 0 a ltac:(lra) ltac:(lra) ltac:(lra) ltac:(lra)).
  rewrite !Rplus_0_l, H_0, !Rminus_0_r in cell by auto. apply cell.
  intros x [x0 x1]. rewrite !Rplus_0_l.
  assert (up := density_up p tail p1 t1 r (x * a) (x * b) r1 ltac:(nra) ltac:(split; nra)).
  assert (d0 := density_nonneg p tail p1 t1 (x * b) ltac:(nra)).
  assert (d0' := density_nonneg p tail p1 t1 (x * a) ltac:(nra)).
  apply Rle_trans with (r ^ (p - 1) * density p tail (x * a) * (r * a)); [apply Rmult_le_compat; lra|].
  right. replace (r ^ p) with (r * r ^ (p - 1)); [ring|]. replace p with (S (p - 1)) at 2 by lia. reflexivity.
Qed.

Lemma H_pos a : 0 < a -> 0 < H p tail a.
Proof.
  intros a0. assert (s := share_below_bounds p tail p1 t1). unfold H. destruct (Rle_dec a 1).
  - apply Rmult_lt_0_compat; [lra | now apply pow_lt].
  - assert (le : (/ a) ^ tail <= 1).
    { rewrite <- (pow1 tail). apply pow_incr. split; [left; apply Rinv_0_lt_compat; lra|].
      rewrite <- Rinv_1. apply Rinv_le_contravar; lra. }
    nra.
Qed.

Lemma H_near m a b : 0 < a -> near m a b -> near (m * p) (H p tail a) (H p tail b).
Proof.
  intros a0 close. assert (b0 := near_pos _ _ _ close a0). destruct close as (_ & _ & up & down).
  assert (one := rho_pow m). unfold near. rewrite pow_mult.
  repeat split; try (left; now apply H_pos).
  - destruct (Rle_dec a b) as [le | gt]; [now apply H_up|].
    assert (inc := H_increasing p tail p1 t1 b a ltac:(lra) ltac:(lra)). assert (h := H_pos a a0).
    assert (one' : 1 <= ((/ (1 - u)) ^ m) ^ p) by now apply pow_R1_Rle. nra.
  - destruct (Rle_dec b a) as [le | gt]; [now apply H_up|].
    assert (inc := H_increasing p tail p1 t1 a b ltac:(lra) ltac:(lra)). assert (h := H_pos b b0).
    assert (one' : 1 <= ((/ (1 - u)) ^ m) ^ p) by now apply pow_R1_Rle. nra.
Qed.

Lemma rest_near m a b : 0 < a -> near m a b -> near (m * tail) (1 - H p tail a) (1 - H p tail b).
Proof.
  intros a0 close. assert (b0 := near_pos _ _ _ close a0). destruct close as (_ & _ & up & down).
  assert (one := rho_pow m). assert (ra := H_below_1 p tail p1 t1 a ltac:(lra)).
  assert (rb := H_below_1 p tail p1 t1 b ltac:(lra)).
  assert (one' : 1 <= ((/ (1 - u)) ^ m) ^ tail) by now apply pow_R1_Rle.
  unfold near. rewrite pow_mult. repeat split; try lra.
  - destruct (Rle_dec b a) as [le | gt]; [now apply rest_down; auto; lra|].
    assert (inc := H_increasing p tail p1 t1 a b ltac:(lra) ltac:(lra)). nra.
  - destruct (Rle_dec a b) as [le | gt]; [now apply rest_down; auto; lra|].
    assert (inc := H_increasing p tail p1 t1 b a ltac:(lra) ltac:(lra)). nra.
Qed.

Lemma times_near m a b k x y n : near m a b -> near k x y -> near (m + n * (k + 1)) (a * x ^ n) (times b y n).
Proof.
  intros close close'. induction n as [|n IH].
  - simpl. rewrite Rmult_1_r, Nat.add_0_r. auto.
  - cbn [times]. replace (m + S n * (k + 1))%nat with (S (m + n * (k + 1) + k)) by lia.
    apply near_fl. replace (a * x ^ S n) with (a * x ^ n * x) by (simpl; ring). now apply near_mult.
Qed.

(** Both are known to 15 c + 26 roundings, whichever part of H applies to the exact level. *)
Lemma below_near x y : 0 < x -> near (3 * c + 4) x y -> y <= 1 -> near (15 * c + 26) (H p tail x) (float_below y).
Proof.
  intros x0 close le. assert (y0 := near_pos _ _ _ close x0).
  assert (s := share_below_bounds p tail p1 t1).
  assert (first := H_near _ _ _ x0 close).
  assert (second : near (1 + p * (0 + 1)) (share_below p tail * y ^ p) (float_below y)).
  { apply times_near; [|apply near_refl; lra]. apply near_fl, near_refl. lra. }
  assert (same : H p tail y = share_below p tail * y ^ p) by (unfold H; destruct (Rle_dec y 1); [auto | lra]).
  rewrite <- same in second. destruct first as (h0 & h0' & up & down), second as (_ & f0 & up' & down').
  apply near_more with ((3 * c + 4) * p + (1 + p * (0 + 1)))%nat.
  - destruct p45 as [-> | ->]; unfold power_monotonic, power_general; lia.
  - unfold near. rewrite pow_add.
    assert (one := rho_pow ((3 * c + 4) * p)). assert (one' := rho_pow (1 + p * (0 + 1))).
    repeat split; auto; nra.
Qed.

Lemma rest_float_near x y : 0 < x -> near (3 * c + 4) x y -> 1 < y ->
  near (15 * c + 26) (1 - H p tail x) (float_rest y).
Proof.
  intros x0 close gt. assert (s := share_below_bounds p tail p1 t1).
  assert (first := rest_near _ _ _ x0 close).
  assert (second : near (1 + tail * (1 + 1)) ((1 - share_below p tail) * (1 / y) ^ tail) (float_rest y)).
  { apply times_near; [apply near_fl, near_refl; lra|].
    apply near_fl, near_refl. apply Rlt_le, Rdiv_lt_0_compat; lra. }
  assert (same : 1 - H p tail y = (1 - share_below p tail) * (1 / y) ^ tail).
  { unfold H. destruct (Rle_dec y 1); [lra|]. unfold Rdiv. rewrite Rmult_1_l. ring. }
  rewrite <- same in second. destruct first as (h0 & h0' & up & down), second as (_ & f0 & up' & down').
  apply near_more with ((3 * c + 4) * tail + (1 + tail * (1 + 1)))%nat; [unfold tail; lia|].
  unfold near. rewrite pow_add.
  assert (one := rho_pow ((3 * c + 4) * tail)). assert (one' := rho_pow (1 + tail * (1 + 1))).
  repeat split; auto; nra.
Qed.

(** ** The margin *)

(** [m] roundings change a number by at most 2 m u of it. *)
Lemma rho_pow_le m : INR m * u <= / 2 -> (/ (1 - u)) ^ m <= 1 + 2 * (INR m * u).
Proof.
  intros half. assert (s := u_small). assert (r := rho).
  assert (bernoulli : 1 - INR m * u <= (1 - u) ^ m).
  { clear half. induction m as [|m IH]; [simpl; lra|]. rewrite S_INR. simpl. assert (0 <= INR m) by apply pos_INR.
    assert (0 <= INR m * u) by (apply Rmult_le_pos; lra). nra. }
  rewrite pow_inv. apply Rle_trans with (/ (1 - INR m * u)); [apply Rinv_le_contravar; lra|].
  apply Rmult_le_reg_r with (1 - INR m * u); [lra|]. rewrite Rinv_l by lra. 
  assert (0 <= INR m * u) by (apply Rmult_le_pos; [apply pos_INR | lra]). nra.
Qed.

Hypothesis margin_small : margin <= / 2 ^ 20.

(** Where floats see that one number exceeds another, it does, by at least 2^-64: more than the bits of U that
    have not been drawn can add. *)
Theorem exceeds_exactly a b x y : near (15 * c + 26) a x /\ near 1 b y \/ near 1 a x /\ near (15 * c + 26) b y ->
  exceeds x y -> b + / 2 ^ 64 < a.
Proof.
  intros close more. assert (s := u_small). set (m := (15 * c + 26)%nat) in *.
  set (k := (m + 1)%nat).
  assert (both : exists m1 m2, near m1 a x /\ near m2 b y /\ (m1 + m2 <= k)%nat).
  { destruct close as [[ca cb] | [ca cb]]; [exists m, 1%nat | exists 1%nat, m];
      (split; [auto | split; [auto | unfold k; lia]]). }
  clear close. destruct both as (m1 & m2 & ca & cb & few).
  assert (C := pos_INR c).
  assert (budget : 2 * (INR k * u) + 3 * u <= margin * (1 - 3 * u)).
  { unfold k, m. rewrite !plus_INR, mult_INR. simpl (INR 15). simpl (INR 26). simpl (INR 1).
    assert (mu : margin * u <= / 2 ^ 20 * u) by (apply Rmult_le_compat_r; lra).
    assert (Cu : 0 <= INR c * u) by (apply Rmult_le_pos; lra). unfold margin in *. lra. }
  assert (K0 : 0 <= INR k * u) by (apply Rmult_le_pos; [apply pos_INR | lra]).
  assert (Khalf : INR k * u <= / 2 ^ 20) by (assert (0 <= margin) by (unfold margin; nra); nra).
  assert (grow : forall n, (n <= k)%nat -> (/ (1 - u)) ^ n <= 1 + 2 * (INR n * u) /\ INR n * u <= INR k * u).
  { intros n le. assert (INR n * u <= INR k * u) by (apply Rmult_le_compat_r; [lra | now apply le_INR]).
    split; auto. apply rho_pow_le. lra. }
  destruct (grow m1 ltac:(lia)) as [g1 _]. destruct (grow m2 ltac:(lia)) as [g2 _].
  assert (sum : INR m1 * u + INR m2 * u <= INR k * u).
  { rewrite <- Rmult_plus_distr_r, <- plus_INR. apply Rmult_le_compat_r; [lra | now apply le_INR]. }
  assert (n1 : 0 <= INR m1 * u) by (apply Rmult_le_pos; [apply pos_INR | lra]).
  assert (n2 : 0 <= INR m2 * u) by (apply Rmult_le_pos; [apply pos_INR | lra]).
  destruct ca as (a0 & x0 & up & _). destruct cb as (b0 & y0 & _ & down).
  unfold exceeds in more. set (tiny := / 2 ^ 63) in *.
  assert (tiny0 : 0 < tiny) by (apply Rinv_0_lt_compat; lra).
  assert (half : / 2 ^ 64 = tiny / 2) by (unfold tiny; lra).
  assert (M0 : 0 <= margin) by (unfold margin; nra).
  assert (W0 : 0 <= margin * x) by now apply Rmult_le_pos.
  assert (e1 := fl_error (margin * x)). rewrite (Rabs_right (margin * x)) in e1 by lra. apply Rabs_le_inv in e1.
  set (W := margin * x) in *. set (A := fl W) in *.
  assert (uW : 0 <= (1 - u) * W) by (apply Rmult_le_pos; lra).
  assert (A0 : (1 - u) * W <= A) by lra.
  assert (e2 := fl_error (A + tiny)). rewrite (Rabs_right (A + tiny)) in e2 by lra. apply Rabs_le_inv in e2.
  set (B := fl (A + tiny)) in *.
  assert (B0 : (1 - u) * (A + tiny) <= B) by lra.
  assert (B1 : (1 - u) * ((1 - u) * W + tiny) <= (1 - u) * (A + tiny)) by (apply Rmult_le_compat_l; lra).
  assert (B2 : 0 < (1 - u) * ((1 - u) * W + tiny)) by (apply Rmult_lt_0_compat; lra).
  assert (e3 := fl_error (x - y)). set (D := x - y) in *.
  assert (pos : 0 < D).
  { destruct (Rle_dec D 0) as [neg|]; [|lra]. rewrite (Rabs_left1 D) in e3 by lra. apply Rabs_le_inv in e3.
    assert (0 <= - D * (1 - u)) by (apply Rmult_le_pos; lra). lra. }
  rewrite (Rabs_right D) in e3 by lra. apply Rabs_le_inv in e3.
  assert (gap : (1 - 3 * u) * W + (1 - 3 * u) * tiny <= D).
  { apply Rmult_le_reg_l with (1 + u); [lra|].
    assert (0 <= u * u * W) by (repeat apply Rmult_le_pos; lra).
    assert (0 <= u * u * tiny) by (repeat apply Rmult_le_pos; lra).
    assert (0 <= u * tiny) by (apply Rmult_le_pos; lra). lra. }
  (* a is at least x / (1 + 2 m1 u), and b at most y (1 + 2 m2 u) *)
  set (d1 := INR m1 * u) in *. set (d2 := INR m2 * u) in *. set (K := INR k * u) in *.
  assert (lowA : x - 2 * d1 * x <= a).
  { assert (x <= (1 + 2 * d1) * a) by (apply Rle_trans with (1 := up); now apply Rmult_le_compat_r).
    apply Rmult_le_reg_l with (1 + 2 * d1); [lra|].
    assert (0 <= d1 * d1 * x) by (apply Rmult_le_pos; [apply Rmult_le_pos|]; lra). lra. }
  assert (highB : b <= y + 2 * d2 * x).
  { assert (b <= (1 + 2 * d2) * y) by (apply Rle_trans with (1 := down); now apply Rmult_le_compat_r).
    assert (0 <= d2 * D) by (apply Rmult_le_pos; lra). unfold D in *. lra. }
  assert (left : (2 * d1 + 2 * d2 + 3 * u) * x <= margin * (1 - 3 * u) * x) by (apply Rmult_le_compat_r; lra).
  assert (0 <= u * x) by (apply Rmult_le_pos; lra).
  rewrite half. unfold D, W in *. assert (u * tiny <= / 10 * tiny) by (apply Rmult_le_compat_r; lra). lra.
Qed.

(** So each of the four comparisons of [_certain] that succeeds is right for every U that starts with the bits
    of [word]; output [m] of run [r] has the exact level [exact_level r m]. *)
Theorem certain_is_right r m word U : (r <= 2 * c + 1)%nat -> (1 <= m)%nat -> (0 <= word < 2 ^ 64)%Z ->
  IZR word * / 2 ^ 64 <= U < (IZR word + 1) * / 2 ^ 64 ->
  let exact := H p tail (exact_level r m) in let y := float_level r m in
  (y <= 1 -> exceeds (float_below y) (float_u word) -> U < exact) /\
  (y <= 1 -> exceeds (float_u word) (float_below y) -> exact <= U) /\
  (1 < y -> exceeds (float_v word) (float_rest y) -> U < exact) /\
  (1 < y -> exceeds (float_rest y) (float_v word) -> exact <= U).
Proof.
  intros run first [word0 word1] [low high] exact y.
  assert (close := level_near r m run). fold y in close.
  assert (pos_weight : forall i, 0 < exact_weight i) by (intros i; apply powerRZ_lt; lra).
  assert (x0 : 0 < exact_level r m).
  { unfold exact_level. apply Rdiv_lt_0_compat; [|unfold peak; lra].
    assert (before : forall i, 0 <= exact_before i).
    { induction i as [|i IH]; cbn [exact_before]; [lra|]. assert (n := pos_INR (counts i)).
      specialize (pos_weight i). assert (0 <= INR (counts i) * exact_weight i) by (apply Rmult_le_pos; lra). lra. }
    assert (0 < INR m * exact_weight r) by (apply Rmult_lt_0_compat; [apply lt_0_INR; lia | auto]).
    specialize (before r). lra. }
  assert (tiny : 0 < / 2 ^ 64) by (apply Rinv_0_lt_compat; lra).
  assert (u_near : near 1 (IZR word * / 2 ^ 64) (float_u word)).
  { unfold float_u. rewrite !(Rmult_comm _ (/ 2 ^ 64)). apply near_scaled; [lra|].
    apply near_fl, near_refl. now apply IZR_le. }
  assert (v_near : near 1 (1 - IZR word * / 2 ^ 64) (float_v word)).
  { replace (1 - IZR word * / 2 ^ 64) with (/ 2 ^ 64 * IZR (2 ^ 64 - word)) by (rewrite minus_IZR; lra).
    unfold float_v. rewrite (Rmult_comm (fl _)). apply near_scaled; [lra|].
    apply near_fl, near_refl. apply IZR_le. lia. }
  repeat split; intros side more.
  - assert (gap := exceeds_exactly _ _ _ _ (or_introl (conj (below_near _ _ x0 close side) u_near)) more).
    fold exact in gap. lra.
  - assert (gap := exceeds_exactly _ _ _ _ (or_intror (conj u_near (below_near _ _ x0 close side))) more).
    fold exact in gap. lra.
  - assert (gap := exceeds_exactly _ _ _ _ (or_intror (conj v_near (rest_float_near _ _ x0 close side))) more).
    fold exact in gap. lra.
  - assert (gap := exceeds_exactly _ _ _ _ (or_introl (conj (rest_float_near _ _ x0 close side) v_near)) more).
    fold exact in gap. lra.
Qed.

(** The number of the first output of a run. *)
Fixpoint edge (r : nat) : nat := match r with O => O | S r => (edge r + counts r)%nat end.

(** Counted by runs, Lambda is what it is summed up output by output in HazardRelease.v. *)
Theorem runs_hazard level r m :
  (forall i k, (edge i <= k < edge i + counts i)%nat -> level k = (Z.of_nat i - Z.of_nat (S c))%Z) ->
  (m <= counts r)%nat -> hazard (weight q level) (edge r + m) / peak = exact_level r m.
Proof.
  intros levels. unfold exact_level. intros le. f_equal.
  assert (inside_run : forall i m, (m <= counts i)%nat ->
    hazard (weight q level) (edge i + m) = hazard (weight q level) (edge i) + INR m * exact_weight i).
  { clear r m le. intros i m. induction m as [|m IH]; intros le.
    - simpl. rewrite Nat.add_0_r. ring.
    - rewrite Nat.add_succ_r. cbn [hazard]. rewrite IH, S_INR by lia.
      unfold weight at 2. rewrite (levels i) by lia. unfold exact_weight.
      replace (- (Z.of_nat i - Z.of_nat (S c)))%Z with (Z.of_nat (S c) - Z.of_nat i)%Z by lia. ring. }
  rewrite inside_run by auto. f_equal. clear m le.
  induction r as [|r IH]; cbn [edge exact_before]; [reflexivity|].
  now rewrite inside_run, IH.
Qed.

End Program.
