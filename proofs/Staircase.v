(** Staircase noise on the whole numbers, clamped to 0, ..., M, and how it is drawn ([Staircase] in _laws.py,
    [GeometricLaw] in _laws.py, [staircase] in _random.py). *)
From Coq Require Import Reals Lra Lia List ZArith.
From Coquelicot Require Import Coquelicot.
From DP Require Import Laws Geometric.
Import ListNotations.
Open Scope R_scope.

(** ** Definitions *)

(** Stairs have [s] places, the middle one those of a size below [r], where 1 <= r <= s. The stair of noise of k
    steps: 0 for the middle one. *)
Definition stair (s r : nat) (k : Z) : nat := ((Z.abs_nat k + s - r) / s)%nat.

(** The weight of all whole numbers, if those of the middle stair have weight 1. *)
Definition staircase_weight (eps : R) (s r : nat) : R := 2 * INR r - 1 + 2 * INR s / (exp eps - 1).

(** Noise of k steps has a probability proportional to exp(-eps stair). *)
Definition staircase (eps : R) (s r : nat) (k : Z) : R := exp (- eps) ^ stair s r k / staircase_weight eps s r.

(** The probability of noise of at least [size] steps, for sizes from 1 on: what is left of its stair, and all
    later ones. *)
Definition staircase_tail (eps : R) (s r : nat) (size : Z) : R :=
  let left := INR r + INR (stair s r size) * INR s - IZR size in
  exp (- eps) ^ stair s r size * (left + INR s / (exp eps - 1)) / staircase_weight eps s r.

(** The probability of noise of at most k steps. *)
Definition staircase_cdf (eps : R) (s r : nat) (k : Z) : R :=
  if (k <? 0)%Z then staircase_tail eps s r (- k) else 1 - staircase_tail eps s r (k + 1).

(** [centre] plus noise, clamped to 0, ..., M: the ends gather all that lies beyond. *)
Definition staircase_mass (eps : R) (s r : nat) (centre : Z) (M k : nat) : R :=
  let place := (Z.of_nat k - centre)%Z in
  if (k =? 0)%nat then if (M =? 0)%nat then 1 else staircase_cdf eps s r place
  else if (k =? M)%nat then 1 - staircase_cdf eps s r (place - 1) else staircase eps s r place.

Definition staircase_law (eps : R) (s r : nat) (centre : Z) (M : nat) : law nat :=
  Law (seq 0 (S M)) (staircase_mass eps s r centre M).

(** The whole numbers from -n to n. *)
Definition around (n : nat) : list Z := map (fun i => (Z.of_nat i - Z.of_nat n)%Z) (seq 0 (2 * n + 1)).

(** The draw. With probability [later] the noise is not on the middle stair. *)
Definition later (eps : R) (s r : nat) : R := 2 * INR s / (2 * INR s + (2 * INR r - 1) * (exp eps - 1)).

(** Then it skips J stairs, at least i with probability exp(-eps i), and one of 2 s places decides the rest. *)
Definition later_noise (s r J place : nat) : Z :=
  let size := Z.of_nat (r + J * s + place mod s) in if (place <? s)%nat then size else (- size)%Z.

(** Otherwise each place of the middle stair is as likely. *)
Definition middle_noise (r place : nat) : Z := (Z.of_nat place - (Z.of_nat r - 1))%Z.

(** The probability that a uniform one of the places 0, ..., m - 1 gives k. *)
Definition uniform_gives (m : nat) (noise_at : nat -> Z) (k : Z) : R :=
  sum_of (fun place => if (noise_at place =? k)%Z then / INR m else 0) (seq 0 m).

(** ** The distribution function is the sum of the probabilities, from 0 at minus infinity to 1 at infinity *)

Section Staircase.

Variables (eps : R) (s r : nat).
Hypothesis eps0 : 0 < eps.
Hypothesis half : (1 <= r <= s)%nat.

Let q := exp (- eps).

#[local] Lemma e1 : 1 < exp eps.
Proof. rewrite <- exp_0. now apply exp_increasing. Qed.

#[local] Lemma q_inv : q = / exp eps.
Proof. unfold q. apply exp_Ropp. Qed.

#[local] Lemma q01 : 0 < q < 1.
Proof.
  split; [apply exp_pos|]. unfold q. rewrite <- exp_0. apply exp_increasing. lra.
Qed.

#[local] Lemma r1 : 1 <= INR r.
Proof. apply (le_INR 1). lia. Qed.

#[local] Lemma s1 : 1 <= INR s.
Proof. apply (le_INR 1). lia. Qed.

#[local] Lemma later_pos : 0 < INR s / (exp eps - 1).
Proof. assert (e := e1). assert (a := s1). apply Rdiv_lt_0_compat; lra. Qed.

Lemma staircase_weight_pos : 0 < staircase_weight eps s r.
Proof. unfold staircase_weight. assert (p := later_pos). assert (a := r1). unfold Rdiv in *. lra. Qed.

Lemma staircase_pos k : 0 < staircase eps s r k.
Proof. apply Rdiv_lt_0_compat; [apply pow_lt, q01 | apply staircase_weight_pos]. Qed.

(** Which stair a size is on. *)
Lemma stair_is k t : (t * s <= Z.abs_nat k + s - r < S t * s)%nat -> stair s r k = t.
Proof.
  intros inside. unfold stair. symmetry. apply Nat.div_unique with (Z.abs_nat k + s - r - t * s)%nat; nia.
Qed.

Lemma stair_spec k : let t := stair s r k in (t * s <= Z.abs_nat k + s - r < S t * s)%nat.
Proof.
  intros t. unfold t, stair. assert (d := Nat.div_mod_eq (Z.abs_nat k + s - r) s).
  assert (m := Nat.mod_upper_bound (Z.abs_nat k + s - r) s ltac:(lia)). nia.
Qed.

Lemma stair_even k : stair s r (- k) = stair s r k.
Proof. unfold stair. now replace (Z.abs_nat (- k)) with (Z.abs_nat k) by lia. Qed.

Lemma stair_middle k : (Z.abs_nat k < r)%nat -> stair s r k = 0%nat.
Proof. intros lt. apply stair_is. lia. Qed.

Lemma later_step : q * (INR s + INR s / (exp eps - 1)) = INR s / (exp eps - 1).
Proof. rewrite q_inv. assert (e := e1). field. lra. Qed.

(** The tail falls by the probabilities ... *)
Lemma tail_step size : (1 <= size)%Z ->
  staircase_tail eps s r size - staircase_tail eps s r (size + 1) = staircase eps s r size.
Proof.
  intros le. unfold staircase_tail, staircase. assert (spec := stair_spec size). cbv zeta in spec.
  set (t := stair s r size) in *. assert (w := staircase_weight_pos). assert (e := e1).
  destruct (Nat.eq_dec (Z.abs_nat size + s - r + 1) (S t * s)) as [last | within].
  - rewrite (stair_is (size + 1) (S t)) by lia.
    assert (at_end : INR r + INR t * INR s - IZR size = 1).
    { replace (IZR size) with (INR (Z.abs_nat size)) by (rewrite INR_IZR_INZ; f_equal; lia).
      rewrite <- mult_INR, <- plus_INR, <- minus_INR by lia. apply (f_equal INR (y := 1%nat)). lia. }
    rewrite plus_IZR, S_INR.
    replace (INR r + (INR t + 1) * INR s - (IZR size + 1)) with (INR s) by lra. rewrite at_end.
    cbn [pow]. fold q. set (L := INR s / (exp eps - 1)).
    replace (q * q ^ t * (INR s + L)) with (q ^ t * (q * (INR s + L))) by ring.
    unfold L. rewrite later_step. field. lra.
  - rewrite (stair_is (size + 1) t) by lia. rewrite plus_IZR. field. lra.
Qed.

(** ... from half of what is not 0 ... *)
Lemma tail_1 : 2 * staircase_tail eps s r 1 = 1 - staircase eps s r 0.
Proof.
  assert (w := staircase_weight_pos). assert (e := e1). unfold staircase. rewrite (stair_middle 0) by lia.
  unfold staircase_tail. set (a := _ * (_ + _)).
  assert (half_of : 2 * a = staircase_weight eps s r - 1).
  { unfold a, staircase_weight. destruct (Nat.eq_dec r 1) as [one | more].
    - rewrite (stair_is 1 1) by lia. rewrite one. fold q. rewrite q_inv. simpl. field. lra.
    - rewrite (stair_middle 1) by lia. simpl. field. lra. }
  replace (2 * (a / staircase_weight eps s r)) with (2 * a / staircase_weight eps s r) by (field; lra).
  rewrite half_of. simpl. field. lra.
Qed.

(** ... to 0. *)
Lemma tail_bounds size : (1 <= size)%Z ->
  0 < staircase_tail eps s r size <= (INR s + INR s / (exp eps - 1)) / staircase_weight eps s r * q ^ stair s r size.
Proof.
  intros le. assert (spec := stair_spec size). cbv zeta in spec. unfold staircase_tail.
  set (t := stair s r size) in *. assert (l0 := later_pos).
  assert (left : 0 <= INR r + INR t * INR s - IZR size <= INR s).
  { replace (IZR size) with (INR (Z.abs_nat size)) by (rewrite INR_IZR_INZ; f_equal; lia).
    rewrite <- mult_INR, <- plus_INR. split; [apply Rge_le, Rge_minus, Rle_ge, le_INR; lia|].
    apply Rplus_le_reg_r with (INR (Z.abs_nat size)). unfold Rminus. rewrite Rplus_assoc, Rplus_opp_l, Rplus_0_r.
    rewrite <- plus_INR. apply le_INR. lia. }
  assert (p : 0 < q ^ t) by apply pow_lt, q01. fold q. assert (w := staircase_weight_pos). split.
  - apply Rdiv_lt_0_compat; auto. apply Rmult_lt_0_compat; lra.
  - unfold Rdiv at 1 3. rewrite (Rmult_comm _ (q ^ t)), <- Rmult_assoc.
    apply Rmult_le_compat_r; [left; now apply Rinv_0_lt_compat|]. apply Rmult_le_compat_l; lra.
Qed.

Lemma tail_limit c : (1 <= c)%Z -> is_lim_seq (fun n => staircase_tail eps s r (c + Z.of_nat n)) 0.
Proof.
  intros c1. set (most := (INR s + INR s / (exp eps - 1)) / staircase_weight eps s r).
  apply is_lim_seq_le_le with (fun _ => 0) (fun n => most * q ^ stair s r (c + Z.of_nat n)).
  - intros n. assert (b := tail_bounds (c + Z.of_nat n) ltac:(lia)). unfold most. lra.
  - apply is_lim_seq_const.
  - replace (Finite 0) with (Rbar_mult most 0) by (simpl; f_equal; ring). apply is_lim_seq_scal_l.
    apply (is_lim_seq_subseq (fun n => q ^ n) 0 (fun n => stair s r (c + Z.of_nat n))).
    + intros P [N all]. exists (s * N)%nat. intros n le. apply all.
      assert (spec := stair_spec (c + Z.of_nat n)). cbv zeta in spec. nia.
    + apply is_lim_seq_geom. rewrite Rabs_right; assert (b := q01); lra.
Qed.

Lemma staircase_even k : staircase eps s r (- k) = staircase eps s r k.
Proof. unfold staircase. now rewrite stair_even. Qed.

Theorem staircase_cdf_step k : staircase_cdf eps s r k - staircase_cdf eps s r (k - 1) = staircase eps s r k.
Proof.
  unfold staircase_cdf. destruct (Z.ltb_spec k 0), (Z.ltb_spec (k - 1) 0); try lia.
  - rewrite <- (staircase_even k), <- tail_step by lia. do 2 f_equal. lia.
  - replace k with 0%Z by lia. assert (t := tail_1). change (- (0 - 1))%Z with 1%Z. change (0 + 1)%Z with 1%Z. lra.
  - rewrite <- tail_step by lia. replace (k - 1 + 1)%Z with k by lia. lra.
Qed.

(** Noise is as likely to be at most -k - 1 as to be above k. *)
Lemma cdf_mirror k : 1 - staircase_cdf eps s r k = staircase_cdf eps s r (- k - 1).
Proof.
  unfold staircase_cdf. destruct (Z.ltb_spec k 0), (Z.ltb_spec (- k - 1) 0); try lia.
  - now replace (- k - 1 + 1)%Z with (- k)%Z by lia.
  - replace (- (- k - 1))%Z with (k + 1)%Z by lia. lra.
Qed.

Lemma cdf_limit k : is_lim_seq (fun n => staircase_cdf eps s r (k - Z.of_nat n)) 0.
Proof.
  set (N := Z.to_nat (k + 1)). apply is_lim_seq_incr_n with N.
  apply is_lim_seq_ext with (fun n => staircase_tail eps s r (Z.of_nat N - k + Z.of_nat n)).
  - intros n. unfold staircase_cdf. destruct (Z.ltb_spec (k - Z.of_nat (n + N)) 0); [|lia]. f_equal. lia.
  - apply tail_limit. lia.
Qed.

Theorem staircase_cdf_limits :
  is_lim_seq (fun n => staircase_cdf eps s r (- Z.of_nat n)) 0 /\
  is_lim_seq (fun n => staircase_cdf eps s r (Z.of_nat n)) 1.
Proof.
  split.
  - apply is_lim_seq_ext with (2 := cdf_limit 0). intros n. f_equal.
  - apply is_lim_seq_ext with (fun n => 1 - staircase_cdf eps s r (-1 - Z.of_nat n)).
    + intros n. assert (m := cdf_mirror (Z.of_nat n)). replace (-1 - Z.of_nat n)%Z with (- Z.of_nat n - 1)%Z by lia.
      lra.
    + replace (Finite 1) with (Finite (1 - 0)) by (f_equal; ring). apply is_lim_seq_minus'.
      * apply is_lim_seq_const.
      * apply cdf_limit.
Qed.

(** So the weights of all whole numbers add up to (2 r - 1) + 2 s / (e^eps - 1). *)
Theorem staircase_total :
  is_lim_seq (fun n => sum_of (fun k => exp (- eps) ^ stair s r k) (around n)) (staircase_weight eps s r).
Proof.
  assert (w := staircase_weight_pos).
  assert (partial : forall n m, sum_of (fun k => exp (- eps) ^ stair s r k)
      (map (fun i => (Z.of_nat i - Z.of_nat n)%Z) (seq 0 m))
    = staircase_weight eps s r
      * (staircase_cdf eps s r (Z.of_nat m - Z.of_nat n - 1) - staircase_cdf eps s r (- Z.of_nat n - 1))).
  { intros n. induction m as [|m IH]; [simpl; ring|]. rewrite seq_S, map_app, sum_of_app, IH. simpl map. simpl sum_of.
    assert (step := staircase_cdf_step (Z.of_nat m - Z.of_nat n)). unfold staircase in step.
    replace (exp (- eps) ^ stair s r (Z.of_nat m - Z.of_nat n)) with
      (staircase_weight eps s r * (exp (- eps) ^ stair s r (Z.of_nat m - Z.of_nat n) / staircase_weight eps s r))
      by (field; lra).
    rewrite <- step. replace (Z.of_nat (S m) - Z.of_nat n - 1)%Z with (Z.of_nat m - Z.of_nat n)%Z by lia. ring. }
  apply is_lim_seq_ext with (fun n => staircase_weight eps s r *
    (staircase_cdf eps s r (Z.of_nat n) - staircase_cdf eps s r (-1 - Z.of_nat n))).
  - intros n. unfold around. rewrite partial. do 3 f_equal; lia.
  - replace (Finite (staircase_weight eps s r)) with (Rbar_mult (staircase_weight eps s r) (1 - 0))
      by (simpl; f_equal; ring).
    apply is_lim_seq_scal_l. apply is_lim_seq_minus'; [apply staircase_cdf_limits | apply cdf_limit].
Qed.

(** ** Up to [s] steps away, all probabilities are within a factor e^eps *)

Lemma stair_near k j : (Z.abs (k - j) <= Z.of_nat s)%Z -> (stair s r k <= S (stair s r j))%nat.
Proof.
  intros near. assert (a := stair_spec k). assert (b := stair_spec j). cbv zeta in a, b.
  destruct (Nat.le_gt_cases (stair s r k) (S (stair s r j))) as [|far]; auto. nia.
Qed.

Lemma staircase_near k j : (Z.abs (k - j) <= Z.of_nat s)%Z -> q * staircase eps s r j <= staircase eps s r k.
Proof.
  intros near. unfold staircase. fold q. unfold Rdiv. rewrite <- Rmult_assoc.
  apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, staircase_weight_pos|].
  apply (pow_drop q q01 _ (S (stair s r j))), stair_near, near.
Qed.

Lemma cdf_near k j : (Z.abs (k - j) <= Z.of_nat s)%Z -> q * staircase_cdf eps s r j <= staircase_cdf eps s r k.
Proof.
  intros near.
  assert (partial : forall n, q * (staircase_cdf eps s r j - staircase_cdf eps s r (j - Z.of_nat n))
    <= staircase_cdf eps s r k - staircase_cdf eps s r (k - Z.of_nat n)).
  { induction n as [|n IH]; [rewrite !Z.sub_0_r; lra|].
    assert (a := staircase_cdf_step (j - Z.of_nat n)). assert (b := staircase_cdf_step (k - Z.of_nat n)).
    assert (c := staircase_near (k - Z.of_nat n) (j - Z.of_nat n) ltac:(lia)).
    replace (j - Z.of_nat (S n))%Z with (j - Z.of_nat n - 1)%Z by lia.
    replace (k - Z.of_nat (S n))%Z with (k - Z.of_nat n - 1)%Z by lia. rewrite <- a in c. lra. }
  assert (lim := is_lim_seq_le _ _ (Rbar_mult q (staircase_cdf eps s r j - 0)) (staircase_cdf eps s r k - 0) partial).
  simpl in lim. rewrite !Rminus_0_r in lim. apply lim.
  - apply (is_lim_seq_scal_l _ q (staircase_cdf eps s r j)).
    replace (Finite (staircase_cdf eps s r j)) with (Finite (staircase_cdf eps s r j - 0)) by (f_equal; ring).
    apply is_lim_seq_minus'; [apply is_lim_seq_const | apply cdf_limit].
  - replace (Finite (staircase_cdf eps s r k)) with (Finite (staircase_cdf eps s r k - 0)) by (f_equal; ring).
    apply is_lim_seq_minus'; [apply is_lim_seq_const | apply cdf_limit].
Qed.

Lemma staircase_mass_near centre centre' M k : (Z.abs (centre - centre') <= Z.of_nat s)%Z ->
  q * staircase_mass eps s r centre' M k <= staircase_mass eps s r centre M k.
Proof.
  intros near. unfold staircase_mass. assert (b := q01).
  destruct (k =? 0)%nat; [destruct (M =? 0)%nat; [lra | apply cdf_near; lia]|].
  destruct (k =? M)%nat; [rewrite !cdf_mirror; apply cdf_near; lia | apply staircase_near; lia].
Qed.

Lemma cdf_pos k : 0 < staircase_cdf eps s r k.
Proof.
  unfold staircase_cdf. destruct (Z.ltb_spec k 0); [apply tail_bounds; lia|].
  assert (m := cdf_mirror k). unfold staircase_cdf in m.
  destruct (Z.ltb_spec k 0), (Z.ltb_spec (- k - 1) 0); try lia.
  assert (step : forall n, staircase_tail eps s r (1 + Z.of_nat n) <= staircase_tail eps s r 1).
  { induction n as [|n IH]; [simpl; lra|]. assert (t := tail_step (1 + Z.of_nat n) ltac:(lia)).
    assert (p := staircase_pos (1 + Z.of_nat n)). replace (1 + Z.of_nat (S n))%Z with (1 + Z.of_nat n + 1)%Z by lia.
    lra. }
  specialize (step (Z.to_nat k)). replace (1 + Z.of_nat (Z.to_nat k))%Z with (k + 1)%Z in step by lia.
  assert (one := tail_1). assert (p := staircase_pos 0). assert (p1 := tail_bounds 1 ltac:(lia)). lra.
Qed.

Lemma staircase_mass_pos centre M k : 0 < staircase_mass eps s r centre M k.
Proof.
  unfold staircase_mass. destruct (k =? 0)%nat, (M =? 0)%nat, (k =? M)%nat; try lra; try apply staircase_pos;
    try rewrite cdf_mirror; apply cdf_pos.
Qed.

(** Clamped noise is a probability law. *)
Theorem staircase_is_law centre M : is_law (staircase_law eps s r centre M).
Proof.
  split; [apply seq_NoDup | split].
  - intros k _. left. apply staircase_mass_pos.
  - destruct M as [|M]; [simpl; unfold staircase_mass; simpl; ring|].
    unfold staircase_law, outcomes. rewrite seq_S, sum_of_app.
    assert (partial : forall m, (m <= M)%nat ->
      sum_of (staircase_mass eps s r centre (S M)) (seq 0 (S m)) = staircase_cdf eps s r (Z.of_nat m - centre)).
    { induction m as [|m IH]; intros le; [simpl; unfold staircase_mass; simpl; ring|].
      rewrite seq_S, sum_of_app, IH by lia. simpl sum_of. unfold staircase_mass. rewrite ?Nat.add_0_l.
      destruct (Nat.eqb_spec (S m) (S M)); [lia|]. simpl (S m =? 0)%nat. cbv iota.
      rewrite <- (staircase_cdf_step (Z.of_nat (S m) - centre)).
      replace (Z.of_nat (S m) - centre - 1)%Z with (Z.of_nat m - centre)%Z by lia. ring. }
    cbn [mass]. rewrite (partial M) by lia. simpl sum_of. unfold staircase_mass.
    rewrite ?Nat.add_0_l, Nat.eqb_refl. simpl (S M =? 0)%nat. cbv iota.
    replace (Z.of_nat (S M) - centre - 1)%Z with (Z.of_nat M - centre)%Z by lia. ring.
Qed.

(** ** The draw *)

(** Where bounds of e^eps and the first bits of the uniform number decide which stair it is, they decide as exact
    numbers would. *)
Theorem later_is_right lower upper u first (bits : nat) :
  lower <= exp eps <= upper -> 0 <= first -> first <= u * 2 ^ bits < first + 1 ->
  (2 * INR s * 2 ^ bits <= first * (2 * INR s + (2 * INR r - 1) * (lower - 1)) -> later eps s r <= u) /\
  ((first + 1) * (2 * INR s + (2 * INR r - 1) * (upper - 1)) <= 2 * INR s * 2 ^ bits -> u < later eps s r).
Proof.
  intros around first0 prefix. assert (b0 : 0 < 2 ^ bits) by (apply pow_lt; lra).
  assert (e := e1). assert (a := r1). assert (c := s1).
  set (D := 2 * INR s + (2 * INR r - 1) * (exp eps - 1)).
  assert (D0 : 0 < D) by (unfold D; nra). assert (same : later eps s r * D = 2 * INR s) by (unfold later, D in *;
  field; lra).
  split; intros decided.
  - assert (le : first * (2 * INR s + (2 * INR r - 1) * (lower - 1)) <= first * D).
    { apply Rmult_le_compat_l; auto. unfold D. apply Rplus_le_compat_l, Rmult_le_compat_l; lra. }
    apply Rmult_le_reg_r with (D * 2 ^ bits); [now apply Rmult_lt_0_compat|]. rewrite <- Rmult_assoc, same.
    apply Rle_trans with (1 := decided), Rle_trans with (1 := le).
    replace (u * (D * 2 ^ bits)) with (u * 2 ^ bits * D) by ring. apply Rmult_le_compat_r; lra.
  - assert (le : (first + 1) * D <= (first + 1) * (2 * INR s + (2 * INR r - 1) * (upper - 1))).
    { apply Rmult_le_compat_l; [lra|]. unfold D. apply Rplus_le_compat_l, Rmult_le_compat_l; lra. }
    apply Rmult_lt_reg_r with (D * 2 ^ bits); [now apply Rmult_lt_0_compat|].
    rewrite <- (Rmult_assoc (later _ _ _)), same.
    apply Rlt_le_trans with (2 := decided), Rlt_le_trans with (2 := le).
    replace (u * (D * 2 ^ bits)) with (u * 2 ^ bits * D) by ring. apply Rmult_lt_compat_r; lra.
Qed.

(** One place of a uniform draw gives k, or none. *)
Lemma uniform_one m noise_at k place : (place < m)%nat ->
  (forall other, (other < m)%nat -> noise_at other = k <-> other = place) -> uniform_gives m noise_at k = / INR m.
Proof.
  intros lt only. unfold uniform_gives.
  assert (part : forall n, (n <= m)%nat ->
    sum_of (fun place => if (noise_at place =? k)%Z then / INR m else 0) (seq 0 n)
    = if (place <? n)%nat then / INR m else 0).
  { induction n as [|n IH]; intros le; [reflexivity|]. rewrite seq_S, sum_of_app, IH by lia. cbn [sum_of].
    rewrite Nat.add_0_l.
    destruct (Z.eqb_spec (noise_at n) k) as [hit | miss], (Nat.ltb_spec place n), (Nat.ltb_spec place (S n));
      try lia; try lra.
    - apply only in hit; lia.
    - apply only in hit; lia.
    - exfalso. apply miss, only; lia. }
  rewrite part by auto. destruct (Nat.ltb_spec place m); [auto | lia].
Qed.

Lemma uniform_none m noise_at k : (forall place, (place < m)%nat -> noise_at place <> k) ->
  uniform_gives m noise_at k = 0.
Proof.
  intros none. unfold uniform_gives. rewrite (sum_of_ext _ (fun _ => 0 * 0)), sum_of_scal; [ring|].
  intros place into. apply in_seq in into. destruct (Z.eqb_spec (noise_at place) k); [|ring].
  exfalso. now apply (none place); [lia|].
Qed.

Lemma series_of_one (a : nat -> R) j : (forall i, i <> j -> a i = 0) -> is_series a (a j).
Proof.
  intros only. enough (sums : is_lim_seq (sum_n a) (a j)) by exact sums.
  apply is_lim_seq_ext_loc with (fun _ => a j); [|apply is_lim_seq_const]. exists j.
  assert (part : forall n, sum_n a n = if (j <=? n)%nat then a j else 0).
  { induction n as [|n IH].
    - rewrite sum_O. destruct (Nat.leb_spec j 0); [f_equal; lia | apply only; lia].
    - rewrite sum_Sn, IH. change plus with Rplus. destruct (Nat.leb_spec j n), (Nat.leb_spec j (S n)); try lia.
      + rewrite (only (S n)) by lia. apply Rplus_0_r.
      + replace (S n) with j by lia. apply Rplus_0_l.
      + rewrite (only (S n)) by lia. apply Rplus_0_l. }
  intros n le. rewrite part. now destruct (Nat.leb_spec j n); [|lia].
Qed.

(** The probability to draw k, over all numbers of stairs that are skipped, is that of the law. *)
Theorem staircase_draw k : exists drawn_later,
  is_series (fun J => exp (- eps) ^ J * (1 - exp (- eps)) * uniform_gives (2 * s) (later_noise s r J) k) drawn_later /\
  later eps s r * drawn_later + (1 - later eps s r) * uniform_gives (2 * r - 1) (middle_noise r) k
    = staircase eps s r k.
Proof.
  assert (e := e1). assert (a := r1). assert (c := s1). fold q.
  assert (D0 : 0 < 2 * INR s + (2 * INR r - 1) * (exp eps - 1)) by nra.
  destruct (Nat.lt_ge_cases (Z.abs_nat k) r) as [middle | far].
  - exists 0. split.
    + apply is_series_ext with (fun _ => 0).
      * intros J. rewrite uniform_none; [symmetry; apply Rmult_0_r|]. intros place lt. unfold later_noise.
        destruct (place <? s)%nat; lia.
      * now apply (series_of_one (fun _ => 0) 0).
    + rewrite (uniform_one _ _ _ (Z.to_nat (k + Z.of_nat r - 1))); [| lia | unfold middle_noise; intros; lia].
      unfold staircase. rewrite stair_middle by auto. unfold later, staircase_weight.
      rewrite minus_INR, mult_INR by lia. simpl. field. repeat split; lra.
  - set (J := ((Z.abs_nat k - r) / s)%nat). set (u := ((Z.abs_nat k - r) mod s)%nat).
    assert (div : (Z.abs_nat k - r = s * J + u)%nat) by apply Nat.div_mod_eq.
    assert (u_lt : (u < s)%nat) by (apply Nat.mod_upper_bound; lia).
    assert (place_mod : forall place, (place < 2 * s)%nat ->
      (place mod s = if (place <? s)%nat then place else place - s)%nat).
    { intros place lt. destruct (Nat.ltb_spec place s).
      - now apply Nat.mod_small.
      - symmetry. apply Nat.mod_unique with 1%nat; lia. }
    set (hit := if (k <? 0)%Z then (u + s)%nat else u).
    eexists. split.
    + apply (series_of_one _ J). intros i differ. rewrite uniform_none; [apply Rmult_0_r|]. intros place lt.
      unfold later_noise.
      assert (m := place_mod place lt). assert (mod_lt := Nat.mod_upper_bound place s ltac:(lia)).
      intros same. apply differ.
      assert (sizes : (r + i * s + place mod s = Z.abs_nat k)%nat) by (destruct (place <? s)%nat; lia).
      unfold J. apply Nat.div_unique with (place mod s)%nat; lia.
    + rewrite (uniform_one _ _ _ hit).
      * rewrite uniform_none; [|intros place lt; unfold middle_noise; lia].
        unfold staircase. rewrite (stair_is k (S J)) by nia. fold q. cbn [pow].
        unfold later, staircase_weight. rewrite mult_INR. simpl (INR 2). rewrite q_inv. field.
        repeat split; lra.
      * unfold hit. destruct (k <? 0)%Z; lia.
      * intros other lt. unfold later_noise. rewrite (place_mod other lt). unfold hit.
        destruct (Z.ltb_spec k 0), (Nat.ltb_spec other s); nia.
Qed.

End Staircase.

(** With one step this is two-sided geometric noise. *)
Theorem staircase_of_one_step eps k : 0 < eps -> staircase eps 1 1 k = noise (exp (- eps)) k.
Proof.
  intros pos. unfold staircase, stair, noise, staircase_weight.
  replace ((Z.abs_nat k + 1 - 1) / 1)%nat with (Z.abs_nat k) by (rewrite Nat.div_1_r; lia).
  assert (e := e1 eps pos). rewrite exp_Ropp. simpl (INR 1). field. repeat split; lra.
Qed.

(** Between whole numbers that are at most [s] steps apart each noisy number is at most e^eps times as likely ... *)
Theorem staircase_ratio eps s r centre centre' k : 0 < eps -> (1 <= r <= s)%nat ->
  (Z.abs (centre - centre') <= Z.of_nat s)%Z ->
  staircase eps s r (k - centre) <= exp eps * staircase eps s r (k - centre').
Proof.
  intros pos half near. assert (le := staircase_near eps s r pos half (k - centre') (k - centre) ltac:(lia)).
  rewrite exp_Ropp in le at 1. assert (e := exp_pos eps). apply Rmult_le_reg_l with (/ exp eps);
  [now apply Rinv_0_lt_compat|].
  rewrite <- Rmult_assoc, Rinv_l by lra. lra.
Qed.

(** ... and so is every set of them, clamped or not: epsilon-differentially private. *)
Theorem staircase_private eps s r centre centre' M : 0 < eps -> (1 <= r <= s)%nat ->
  (Z.abs (centre - centre') <= Z.of_nat s)%Z ->
  within eps (staircase_law eps s r centre M) (staircase_law eps s r centre' M).
Proof.
  intros pos half near. apply within_of_outcomes; auto. intros k _. simpl.
  assert (le := staircase_mass_near eps s r pos half centre' centre M k ltac:(lia)).
  rewrite exp_Ropp in le. assert (e := exp_pos eps). apply Rmult_le_reg_l with (/ exp eps);
  [now apply Rinv_0_lt_compat|].
  rewrite <- Rmult_assoc, Rinv_l by lra. lra.
Qed.
