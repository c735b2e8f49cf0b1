(** The population variance under replace_one (theory, 1 and 3; [variance_bounds] in variance_bounds.py). *)
From Coq Require Import Reals Lra Lia List ZArith.
From DP Require Import Constants Laws HazardRelease OutputBounds MeanLoss Least Leavings.
Import ListNotations.
Open Scope R_scope.

(** ** Definitions *)

(** The sum of squares about the mean, which is n times the variance. *)
Definition sum_squares (x : list R) : R := total (map (fun v => v * v) x) - total x * total x / INR (length x).

(** The least sum of squares that is left. (The program looks at windows of sorted values only, where the least
    one is: that is on paper, and tested by brute force.) *)
Definition least_spread (l : nat) (x : list R) : R := least_of (map sum_squares (leavings l x)).

(** L^l is the least sum of squares over n; U^l = min(Var + l (b-a)^2 (n-1) / n^2, (b-a)^2 / 4) if there are
    public limits (a, b). *)
Definition variance_bounds (round : R -> R) (limits : option (R * R)) (t_max : R) (x : list R) : bounds :=
  let n := INR (length x) in
  {| lower l := round (least_spread l x / n);
     upper l := match l with
                | O => round (sum_squares x / n)
                | S _ =>
                    match limits with
                    | Some (a, b) =>
                        let width := (b - a) * (b - a) in
                        Rmin (round (sum_squares x / n + INR l * (width * (n - 1) / (n * n)))) (round (width / 4))
                    | None => t_max
                    end
                end |}.

Definition valid_value (limits : option (R * R)) (v : R) : Prop :=
  match limits with Some (a, b) => a <= v <= b | None => True end.

Definition private_variance (q : R) (public : nat -> settings) (round : R -> R) (limits : option (R * R))
    (t_max : R) (x : list R) : law nat :=
  let n := length x in
  hazard_release power_general q (grid (public n)) (last (public n)) (min (capacity (public n)) n)
    (variance_bounds round limits t_max x).

(** ** Sums of squares *)

Definition about (m : R) (x : list R) : R := total (map (fun v => (v - m) * (v - m)) x).

Lemma about_expand m x : about m x = total (map (fun v => v * v) x) - 2 * m * total x + INR (length x) * (m * m).
Proof.
  unfold about. induction x as [|v x IH]; cbn [map total length]; [simpl; ring|]. rewrite IH, S_INR. ring.
Qed.

(** The mean is the best centre. *)
Lemma sum_squares_least m x : sum_squares x <= about m x.
Proof.
  destruct x as [|v x]; [unfold sum_squares, about; simpl; lra|]. set (y := v :: x).
  assert (n0 : 0 < INR (length y)) by (apply lt_0_INR; simpl; lia).
  rewrite about_expand. unfold sum_squares. set (n := INR (length y)) in *. set (s := total y).
  assert (square : 0 <= / n * ((s - n * m) * (s - n * m))).
  { apply Rmult_le_pos; [left; now apply Rinv_0_lt_compat | apply Rle_0_sqr]. }
  replace (/ n * ((s - n * m) * (s - n * m))) with (s * s / n - 2 * m * s + n * (m * m)) in square by (field; lra).
  lra.
Qed.

Lemma sum_squares_mean x : (0 < length x)%nat -> sum_squares x = about (total x / INR (length x)) x.
Proof.
  intros n0. apply lt_0_INR in n0. rewrite about_expand. unfold sum_squares. field. lra.
Qed.

Lemma about_nonneg m x : 0 <= about m x.
Proof. unfold about. induction x as [|v x IH]; cbn [map total]; [lra|]. assert (s := Rle_0_sqr (v - m)).
unfold Rsqr in s. lra. Qed.

Lemma about_app m x y : about m (x ++ y) = about m x + about m y.
Proof. unfold about. rewrite map_app. induction x; simpl; [|rewrite IHx]; ring. Qed.

(** One value less never raises it. *)
Lemma sum_squares_drops before v after : sum_squares (before ++ after) <= sum_squares (before ++ v :: after).
Proof.
  assert (n0 : (0 < length (before ++ v :: after))%nat) by (rewrite app_length; simpl; lia).
  rewrite (sum_squares_mean _ n0). set (m := total _ / _).
  apply Rle_trans with (1 := sum_squares_least m _). rewrite !about_app. unfold about at 4. cbn [map total].
  fold (about m after). assert (s := Rle_0_sqr (v - m)). unfold Rsqr in s. lra.
Qed.

Lemma total_app x y : total (x ++ y) = total x + total y.
Proof. induction x; simpl; [|rewrite IHx]; ring. Qed.

Lemma total_range a b x : Forall (fun u => a <= u <= b) x -> INR (length x) * a <= total x <= INR (length x) * b.
Proof. induction 1; cbn [length total]; [simpl; lra|]. rewrite S_INR. lra. Qed.

(** The variance moves by at most (b-a)^2 (n-1) / n^2 when one value is replaced. *)
Lemma variance_moves a b before v v' after : Forall (fun u => a <= u <= b) (before ++ v :: after) -> a <= v' <= b ->
  let n := INR (length (before ++ v :: after)) in
  sum_squares (before ++ v :: after) / n
    <= sum_squares (before ++ v' :: after) / n + (b - a) * (b - a) * (n - 1) / (n * n).
Proof.
  intros all v'_in n.
  assert (size : length (before ++ v' :: after) = length (before ++ v :: after)) by (rewrite !app_length;
    reflexivity).
  set (k := INR (length (before ++ after))). set (T := total (before ++ after)).
  assert (nk : n = k + 1).
  { unfold n, k. rewrite !app_length. simpl length. rewrite Nat.add_succ_r, S_INR. reflexivity. }
  assert (k0 : 0 <= k) by apply pos_INR.
  assert (others : Forall (fun u => a <= u <= b) (before ++ after) /\ a <= v <= b).
  { apply Forall_app in all. destruct all as [left right]. inversion right; subst. split; auto.
    now apply Forall_app. }
  assert (T_in : k * a <= T <= k * b).
  { apply total_range, others. }
  assert (expand : forall w, sum_squares (before ++ w :: after) =
    total (map (fun u => u * u) (before ++ after)) + w * w - (T + w) * (T + w) / n).
  { intros w. unfold sum_squares.
    replace (INR (length (before ++ w :: after))) with n by (unfold n; f_equal; rewrite !app_length; reflexivity).
    unfold T. rewrite !map_app, !total_app. cbn [map total]. f_equal; [ring | f_equal; ring]. }
  rewrite !expand. set (Q := total (map _ _)).
  apply Rmult_le_reg_r with (n * n); [apply Rmult_lt_0_compat; lra|].
  replace ((Q + v * v - (T + v) * (T + v) / n) / n * (n * n)) with (n * (Q + v * v) - (T + v) * (T + v))
    by (field; lra).
  replace (((Q + v' * v' - (T + v') * (T + v') / n) / n + (b - a) * (b - a) * (n - 1) / (n * n)) * (n * n))
    with (n * (Q + v' * v') - (T + v') * (T + v') + (b - a) * (b - a) * (n - 1)) by (field; lra).
  rewrite nk. destruct others as [_ v_in]. destruct k0 as [k0 | kz].
  - assert (quadratic : k * (v * v) - 2 * T * v - (k * (v' * v') - 2 * T * v') <= k * ((b - a) * (b - a))); [|lra].
    set (w := T / k). assert (Tw : T = k * w) by (unfold w; field; lra).
    assert (w_in : a <= w <= b) by (split; apply Rmult_le_reg_l with k; lra).
    rewrite Tw.
    replace (k * (v * v) - 2 * (k * w) * v - (k * (v' * v') - 2 * (k * w) * v')) with
      (k * ((v - w) * (v - w) - (v' - w) * (v' - w))) by ring.
    apply Rmult_le_compat_l; [lra|]. assert (s := Rle_0_sqr (v' - w)). unfold Rsqr in s.
    assert (0 <= (b - a - (v - w)) * (b - a + (v - w))) by (apply Rmult_le_pos; lra). lra.
  - rewrite <- kz in *. assert (T0 : T = 0) by lra. rewrite T0. lra.
Qed.

(** ** The least sum of squares that is left *)

Lemma sum_squares_of_drops y y' : drops y y' -> sum_squares y' <= sum_squares y.
Proof. intros (before & v & after & -> & ->). apply sum_squares_drops. Qed.

Lemma least_spread_step l x x' : (l < length x)%nat ->
  (forall y, In y (leavings l x) -> y <> [] -> exists y', In y' (leavings (S l) x') /\ drops y y') ->
  least_spread (S l) x' <= least_spread l x.
Proof.
  intros lt step. unfold least_spread.
  assert (some : map sum_squares (leavings l x) <> []).
  { assert (ex := leavings_exist l x ltac:(lia)). now destruct (leavings l x). }
  assert (into := least_of_in _ some). apply in_map_iff in into. destruct into as (y & <- & into).
  assert (long := leavings_length _ _ _ into).
  destruct (step y into ltac:(intros ->; simpl in long; lia)) as (y' & into' & less).
  apply Rle_trans with (sum_squares y'); [|now apply sum_squares_of_drops].
  apply least_of_le, in_map_iff. now exists y'.
Qed.

(** ** Output bounds *)

Section Variance.

Variables (round : R -> R) (limits : option (R * R)) (t_max : R).
Hypothesis rounds : rounding round t_max.

Let bounds_of := variance_bounds round limits t_max.

Lemma sum_squares_half a b x : Forall (fun v => a <= v <= b) x ->
  sum_squares x / INR (length x) <= (b - a) * (b - a) / 4 \/ length x = 0%nat.
Proof.
  intros all. destruct (Nat.eq_dec (length x) 0) as [|n0]; [auto | left].
  assert (N : 0 < INR (length x)) by (apply lt_0_INR; lia).
  apply Rle_trans with (INR (length x) * ((b - a) * (b - a) / 4) / INR (length x)).
  - apply over_n. apply Rle_trans with (1 := sum_squares_least ((a + b) / 2) x). unfold about. clear n0 N.
    induction all as [|v x v_in all IH]; cbn [map total length]; [simpl; lra|]. rewrite S_INR.
    assert (0 <= (b - v) * (v - a)) by (apply Rmult_le_pos; lra). lra.
  - right. field. lra.
Qed.

Lemma variance_nested x c : Forall (valid_value limits) x -> (c <= length x)%nat -> nested c (bounds_of x).
Proof.
  intros ok few. destruct rounds as [mono most]. split.
  - simpl. unfold least_spread. destruct x; reflexivity.
  - intros l lt. assert (N : 0 < INR (length x)) by (apply lt_0_INR; lia). split.
    + simpl. apply mono, over_n, least_spread_step; [lia|]. intros. now apply drop_any.
    + unfold bounds_of, variance_bounds; cbn [upper]. destruct limits as [[a b]|]; [|destruct l; [apply most | lra]].
      set (W := (b - a) * (b - a)). set (n := INR (length x)) in *. set (S0 := W * (n - 1) / (n * n)).
      assert (W0 : 0 <= W) by (unfold W; apply Rle_0_sqr).
      assert (n1 : 1 <= n) by (unfold n; apply (le_INR 1); lia).
      assert (S1 : 0 <= S0).
      { apply Rmult_le_pos; [apply Rmult_le_pos; lra | left; apply Rinv_0_lt_compat, Rmult_lt_0_compat; lra]. }
      assert (half := sum_squares_half a b x ok). destruct half as [half|]; [|lia]. fold W n in half.
      destruct l as [|l].
      * apply Rmin_glb; apply mono; simpl INR; lra.
      * apply Rle_min_compat_r, mono. rewrite (S_INR (S l)). lra.
Qed.

(** The bounds of the variance satisfy Definition 3.4 (they do not move in one direction). *)
Theorem variance_one_rank_apart x x' c : replace_one (valid_value limits) x x' -> (c <= length x)%nat ->
  one_rank_apart c (bounds_of x) (bounds_of x').
Proof.
  intros (ok & ok' & before & v & v' & after & -> & ->) few l lt. destruct rounds as [mono most].
  assert (size : length (before ++ v' :: after) = length (before ++ v :: after))
    by (rewrite !app_length; reflexivity).
  split.
  - unfold bounds_of, variance_bounds; cbn [upper]. rewrite size.
    destruct limits as [[a b]|]; [|destruct l; [apply most | lra]].
    assert (moved := variance_moves a b before v v' after ok ltac:(rewrite Forall_forall in ok'; apply ok', in_elt)).
    cbv zeta in moved. set (n := INR (length _)) in *. set (W := (b - a) * (b - a)) in *.
    set (S0 := W * (n - 1) / (n * n)) in *.
    destruct (sum_squares_half a b _ ok) as [half | none]; [fold n W in half | rewrite none in few; lia].
    destruct l as [|l].
    + apply Rmin_glb; apply mono; simpl INR; lra.
    + apply Rle_min_compat_r, mono. rewrite (S_INR (S l)). lra.
  - simpl. rewrite size. apply mono, over_n, least_spread_step; [lia|]. intros. now apply drop_changed with v.
Qed.

End Variance.

(** So the variance, released by hazard selection with power 5 and epsilon/5, is private, end to end. *)
Theorem private_variance_is_private eps q public round limits t_max :
  exp (- (eps / INR share_general)) <= q <= 1 -> rounding round t_max ->
  private eps (replace_one (valid_value limits)) (private_variance q public round limits t_max).
Proof.
  intros ratio rounds.
  assert (way : forall x x', replace_one (valid_value limits) x x' ->
    within eps (private_variance q public round limits t_max x) (private_variance q public round limits t_max x')).
  { intros x x' pair. assert (back := replace_one_sym _ _ _ pair).
    assert (size : length x' = length x).
    { destruct pair as (_ & _ & before & v & v' & after & -> & ->). now rewrite !app_length. }
    unfold private_variance. rewrite size. set (c := min (capacity (public (length x))) (length x)).
    assert (few : (c <= length x)%nat) by apply Nat.le_min_r.
    apply release_private_general; auto.
    - apply variance_nested; auto. apply pair.
    - apply variance_nested; [auto | apply pair | lia].
    - now apply variance_one_rank_apart.
    - apply variance_one_rank_apart; auto. lia. }
  intros x x' pair. split; apply way; auto. now apply replace_one_sym.
Qed.
