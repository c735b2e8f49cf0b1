(** Noise on two sums that one record moves by as much together as it moves their whole: means, and both stages of
    the default, with a private number of records (theory, 7; [ratio_sums] in output_bounds.py, [SumsLaw] in
    geometric.py). *)
From Coq Require Import Reals Lra Lia List ZArith.
From DP Require Import Constants Laws HazardRelease OutputBounds MeanLoss Variance AddRemove Lipschitz Geometric
  Adaptive ClippedSquares Counted.
Import ListNotations.
Open Scope R_scope.

(** ** Definitions *)

(** T in steps of C / fineness, rounded, and what is left of n C. *)
Definition two_sums (C : R) (fineness : nat) (T : R) (n : nat) : Z * Z :=
  let steps := nearest (INR fineness * T / C) in (steps, Z.of_nat n * Z.of_nat fineness - steps)%Z.

(** Two-sided geometric noise on either, on any finite list of noisy sums. *)
Definition noisy_sums (eps : R) (fineness : nat) (seen : list (Z * Z)) (sums : Z * Z) : law (Z * Z) :=
  let q := exp (- (eps / INR fineness)) in
  Law seen (fun ab => noise q (fst ab - fst sums) * noise q (snd ab - snd sums)).

(** Any first stage, of whose outcome the scale is made, and both noisy sums, given the scale. *)
Definition private_n_stages (eps_b : R) (p : stages) (seen : list (Z * Z)) (T : R -> list R -> R)
    (first : list R -> law nat) (x : list R) : law (nat * (Z * Z)) :=
  then_ (first x) (fun drawn =>
    let C := clip p drawn in noisy_sums eps_b (fineness p) seen (two_sums C (fineness p) (T C x) (length x))).

(** A record adds 0 to C to the sum. *)
Definition grows_by (valid : R -> Prop) (C : R) (T : list R -> R) : Prop :=
  forall before v after, Forall valid (before ++ v :: after) ->
    T (before ++ after) <= T (before ++ v :: after) <= T (before ++ after) + C.

(** ** Facts *)

Lemma noise_far q k j : 0 < q < 1 -> q ^ Z.abs_nat (k - j) * noise q j <= noise q k.
Proof.
  intros q01. unfold noise. assert (c0 : 0 < (1 - q) / (1 + q)) by (apply Rdiv_lt_0_compat; lra).
  assert (le := pow_drop q q01 (Z.abs_nat k) (Z.abs_nat (k - j) + Z.abs_nat j) ltac:(lia)).
  rewrite pow_add in le. nra.
Qed.

Lemma rate_is_ratio eps fineness : 0 < eps -> (0 < fineness)%nat -> 0 < exp (- (eps / INR fineness)) < 1.
Proof.
  intros pos n0. split; [apply exp_pos|]. rewrite <- exp_0. apply exp_increasing.
  assert (0 < eps / INR fineness) by (apply Rdiv_lt_0_compat; [auto | now apply lt_0_INR]). lra.
Qed.

Lemma noisy_sums_pos eps fineness seen sums ab : 0 < eps -> (0 < fineness)%nat ->
  0 < mass (noisy_sums eps fineness seen sums) ab.
Proof. intros. simpl. apply Rmult_lt_0_compat; now apply noise_pos, rate_is_ratio. Qed.

(** Two whole numbers that move by at most [fineness] steps together. *)
Theorem noisy_sums_private eps fineness seen sums sums' : 0 < eps -> (0 < fineness)%nat ->
  (Z.abs (fst sums - fst sums') + Z.abs (snd sums - snd sums') <= Z.of_nat fineness)%Z ->
  within eps (noisy_sums eps fineness seen sums) (noisy_sums eps fineness seen sums') /\
  forall ab, mass (noisy_sums eps fineness seen sums) ab <= exp eps * mass (noisy_sums eps fineness seen sums') ab.
Proof.
  intros pos n0 near. enough (each : forall ab,
    mass (noisy_sums eps fineness seen sums) ab <= exp eps * mass (noisy_sums eps fineness seen sums') ab)
    by (split; auto; now apply within_of_outcomes).
  assert (N : 0 < INR fineness) by now apply lt_0_INR. assert (q01 := rate_is_ratio eps fineness pos n0).
  set (q := exp (- (eps / INR fineness))) in *.
  assert (cost : exp eps * q ^ fineness = 1).
  { assert (powers : forall m, q ^ m = exp (- (INR m * (eps / INR fineness)))).
    { induction m as [|m IH]; [simpl; now rewrite Rmult_0_l, Ropp_0, exp_0|].
      simpl pow. rewrite IH. unfold q. rewrite <- exp_plus. f_equal. rewrite S_INR. ring. }
    rewrite powers, <- exp_plus. replace (eps + _) with 0; [apply exp_0 | field; lra]. }
  intros [a b]. simpl. fold q.
  destruct sums as [s t], sums' as [s' t']. simpl in *.
  assert (first := noise_far q (a - s') (a - s) q01). assert (second := noise_far q (b - t') (b - t) q01).
  set (i := Z.abs_nat (a - s' - (a - s))) in *. set (j := Z.abs_nat (b - t' - (b - t))) in *.
  assert (both : q ^ fineness <= q ^ i * q ^ j).
  { rewrite <- pow_add. apply pow_drop; auto. unfold i, j. lia. }
  assert (P := noise_pos q q01 (a - s)). assert (Q := noise_pos q q01 (b - t)).
  assert (I := pow_pos q q01 i). assert (J := pow_pos q q01 j).
  apply Rle_trans with (exp eps * (q ^ fineness * (noise q (a - s) * noise q (b - t)))).
  - rewrite <- Rmult_assoc, cost. lra.
  - apply Rmult_le_compat_l; [left; apply exp_pos|].
    apply Rle_trans with ((q ^ i * q ^ j) * (noise q (a - s) * noise q (b - t))).
    + apply Rmult_le_compat_r; auto. left. now apply Rmult_lt_0_compat.
    + replace (q ^ i * q ^ j * (noise q (a - s) * noise q (b - t)))
        with ((q ^ i * noise q (a - s)) * (q ^ j * noise q (b - t))) by ring.
      apply Rmult_le_compat; auto; left; now apply Rmult_lt_0_compat.
Qed.

Lemma nearest_monotone a b : a <= b -> (nearest a <= nearest b)%Z.
Proof.
  intros le. unfold nearest. destruct (base_Int_part (a + 1 / 2)) as [low _].
  destruct (base_Int_part (b + 1 / 2)) as [_ high]. apply Z.lt_succ_r, lt_IZR. rewrite succ_IZR. lra.
Qed.

(** A record moves one of the sums by 0 to [fineness] steps, and the other one by the rest of them. *)
Theorem two_sums_move C fineness T T' n : 0 < C -> T <= T' <= T + C ->
  let sums := two_sums C fineness T n in let sums' := two_sums C fineness T' (S n) in
  (Z.abs (fst sums - fst sums') + Z.abs (snd sums - snd sums') = Z.of_nat fineness)%Z.
Proof.
  intros C0 [up near]. unfold two_sums. cbn [fst snd]. assert (i0 : 0 < / C) by now apply Rinv_0_lt_compat.
  assert (N := pos_INR fineness).
  assert (grows := nearest_monotone (INR fineness * T / C) (INR fineness * T' / C)).
  assert (least : INR fineness * T / C <= INR fineness * T' / C).
  { apply Rmult_le_compat_r; [lra|]. now apply Rmult_le_compat_l. }
  assert (most : INR fineness * T' / C <= INR fineness * T / C + INR fineness).
  { replace (INR fineness * T / C + INR fineness) with (INR fineness * (T + C) / C) by (field; lra).
    apply Rmult_le_compat_r; [lra|]. now apply Rmult_le_compat_l. }
  assert (moved := nearest_moves (INR fineness * T' / C) (INR fineness * T / C) fineness).
  specialize (grows least). specialize (moved ltac:(apply Rabs_le; lra)).
  rewrite Nat2Z.inj_succ, Z.mul_succ_l. lia.
Qed.

(** A mean of numbers from 0 to 1 and its spread ([MeanWithSpread] in mean.py, [SpreadLaw] in geometric.py). Whatever
    lies between 0 and both a number and what is left of it to 1, comes free with the number itself. *)
Theorem spread_comes_free u w a b : 0 <= a <= u -> a <= 1 - u -> 0 <= b <= w -> b <= 1 - w ->
  Rabs (u - w) + Rabs (a - b) <= 1.
Proof. intros. unfold Rabs. repeat destruct Rcase_abs; lra. Qed.

(** Two numbers that move by at most n together move by at most a step more once each is rounded. *)
Theorem rounding_two_adds_a_step a a' b b' n : Rabs (a - a') + Rabs (b - b') <= INR n ->
  (Z.abs (nearest a - nearest a') + Z.abs (nearest b - nearest b') <= Z.of_nat n + 1)%Z.
Proof.
  intros near. assert (one : forall x y, IZR (Z.abs (nearest x - nearest y)) < Rabs (x - y) + 1).
  { intros x y. rewrite abs_IZR, minus_IZR. unfold nearest.
    destruct (base_Int_part (x + 1 / 2)) as [p q]. destruct (base_Int_part (y + 1 / 2)) as [r s].
    unfold Rabs. repeat destruct Rcase_abs; lra. }
  assert (p := one a a'). assert (q := one b b'). apply Z.lt_succ_r. unfold Z.succ. apply lt_IZR.
  rewrite !plus_IZR, <- INR_IZR_INZ. lra.
Qed.

Lemma two_sums_near valid C fineness T x x' : 0 < C -> grows_by valid C T -> add_or_remove_one valid x x' ->
  let sums := two_sums C fineness (T x) (length x) in let sums' := two_sums C fineness (T x') (length x') in
  (Z.abs (fst sums - fst sums') + Z.abs (snd sums - snd sums') <= Z.of_nat fineness)%Z.
Proof.
  intros C0 grows pair sums sums'.
  assert (one : forall y y', adds valid y y' -> let s := two_sums C fineness (T y) (length y) in
    let s' := two_sums C fineness (T y') (length y') in
    (Z.abs (fst s - fst s') + Z.abs (snd s - snd s') = Z.of_nat fineness)%Z).
  { intros y y' (ok & before & v & after & -> & ->).
    replace (length (before ++ v :: after)) with (S (length (before ++ after))) by (rewrite !app_length; simpl; lia).
    apply two_sums_move; auto. }
  destruct pair as [more | less]; [specialize (one _ _ more) | specialize (one _ _ less)]; cbv zeta in one;
    fold sums sums' in one; lia.
Qed.

Lemma add_or_remove_sym valid x x' : add_or_remove_one valid x x' -> add_or_remove_one valid x' x.
Proof. intros [more | less]; [now right | now left]. Qed.

(** So both noisy sums of a mean are private: all that [Geometric] needs of a mean of losses from 0 to B. *)
Theorem two_sums_private eps fineness seen valid C T : 0 < eps -> (0 < fineness)%nat -> 0 < C -> grows_by valid C T ->
  private eps (add_or_remove_one valid) (fun x => noisy_sums eps fineness seen (two_sums C fineness (T x) (length x))).
Proof.
  intros pos n0 C0 grows x x' pair. assert (back := add_or_remove_sym _ _ _ pair).
  split; apply noisy_sums_private; auto; now apply two_sums_near with (2 := grows).
Qed.

(** Any private first stage, and both sums: together they cost the sum. *)
Theorem private_n_stages_private eps_a eps_b valid p seen T first : 0 < eps_b ->
  (0 < fineness p)%nat -> (forall drawn, 0 < clip p drawn) -> (forall C, 0 < C -> grows_by valid C (T C)) ->
  private eps_a (add_or_remove_one valid) first ->
  (forall x, NoDup (outcomes (first x)) /\ forall drawn, 0 <= mass (first x) drawn) ->
  private (eps_a + eps_b) (add_or_remove_one valid) (private_n_stages eps_b p seen T first).
Proof.
  intros b0 n0 scales grows private_first laws.
  assert (way : forall x x', add_or_remove_one valid x x' -> within (eps_a + eps_b)
    (private_n_stages eps_b p seen T first x) (private_n_stages eps_b p seen T first x')).
  { intros x x' pair. apply within_then; auto.
    - intros a into. apply (within_at Nat.eq_dec); auto; [apply laws | apply (private_first _ _ pair)].
    - intros a _. apply laws.
    - apply (private_first _ _ pair).
    - intros a ab _ _. split; [left; now apply noisy_sums_pos|].
      apply noisy_sums_private; auto. now apply two_sums_near with (2 := grows _ (scales a)). }
  intros x x' pair. split; apply way; auto. now apply add_or_remove_sym.
Qed.

(** The clipped sums of losses and of squares are such sums. *)
Lemma clipped_total_grows C (valid : R -> Prop) : 0 <= C -> (forall v, valid v -> 0 <= v) ->
  grows_by valid C (clipped_total C).
Proof.
  intros C0 pos before v after ok. unfold clipped_total. rewrite !map_app, !total_app. cbn [map total].
  assert (v0 : 0 <= v) by (apply pos; rewrite Forall_forall in ok; apply ok, in_elt).
  assert (low := Rmin_glb C v 0 C0 v0). assert (high := Rmin_l C v). lra.
Qed.

Lemma clipped_squares_grows C valid : 0 <= C -> grows_by valid C (clipped_squares C).
Proof. intros C0 before v after _. now apply clipped_squares_grow. Qed.

Lemma total_grows B : grows_by (valid_loss (Some B)) B total.
Proof.
  intros before v after ok. rewrite !total_app. cbn [total].
  assert (v_in : valid_loss (Some B) v) by (rewrite Forall_forall in ok; apply ok, in_elt).
  destruct v_in. lra.
Qed.
