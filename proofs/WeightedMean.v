(** Weighted means, and means over groups of records that change together: each term has a public limit of its
    own (theory, 1 and 3; [MeanStats.bounds] in quantities/mean.py). *)
From Coq Require Import Reals Lra Lia List ZArith Permutation.
From DP Require Import Constants Laws HazardRelease OutputBounds MeanLoss.
Import ListNotations.
Open Scope R_scope.

(** ** Definitions *)

(** The terms of a data set, w_i v_i or the sum over a group, lie between 0 and the public [limits]. *)
Definition valid_terms (limits x : list R) : Prop := Forall2 (fun v m => 0 <= v <= m) x limits.

Definition replace_term (limits x x' : list R) : Prop :=
  valid_terms limits x /\ valid_terms limits x' /\
  exists before v v' after, x = before ++ v :: after /\ x' = before ++ v' :: after.

(** What each term may still grow by. *)
Fixpoint headrooms (limits x : list R) : list R :=
  match limits, x with m :: limits, v :: x => (m - v) :: headrooms limits x | _, _ => [] end.

(** L^l drops the l largest terms, U^l adds the l largest headrooms; [weight] is the public total weight. Each
    is rounded once. Without limits of the losses every U^l but f is the public limit [t_max]. *)
Definition weighted_bounds (round : R -> R) (is_capped : bool) (weight t_max : R) (limits x : list R) : bounds :=
  {| lower l := round ((total x - top l x) / weight);
     upper l := if is_capped then round ((total x + top l (headrooms limits x)) / weight)
                else match l with O => round (total x / weight) | S _ => t_max end |}.

Definition private_weighted_mean (q : R) (grid : nat -> R) (last capacity : nat) (round : R -> R)
    (is_capped : bool) (weight t_max : R) (limits x : list R) : law nat :=
  hazard_release power_monotonic q grid last (min capacity (length limits))
    (weighted_bounds round is_capped weight t_max limits x).

(** ** Facts *)

Section Weighted.

Variables (round : R -> R) (is_capped : bool) (weight t_max : R) (limits : list R).
Hypothesis rounds : rounding round t_max.
Hypothesis weight_pos : 0 < weight.

Let bounds_of := weighted_bounds round is_capped weight t_max limits.

Lemma terms_nonneg m x : valid_terms m x -> Forall nonneg x.
Proof. unfold nonneg. induction 1; constructor; auto. lra. Qed.

Lemma headrooms_nonneg m x : valid_terms m x -> Forall nonneg (headrooms m x).
Proof. unfold nonneg. induction 1; simpl; constructor; auto. lra. Qed.

Lemma total_headrooms m x : valid_terms m x -> total x + total (headrooms m x) = total m.
Proof. induction 1; simpl; lra. Qed.

Lemma lower_low x l : valid_terms limits x -> total x - top l x = low l x.
Proof. intros ok. apply low_is_top. now apply terms_nonneg with limits. Qed.

Lemma upper_low x l : valid_terms limits x ->
  total x + top l (headrooms limits x) = total limits - low l (headrooms limits x).
Proof.
  intros ok. assert (same := total_headrooms _ _ ok).
  rewrite <- (low_is_top l (headrooms limits x)) by now apply headrooms_nonneg. lra.
Qed.

Lemma over_weight a b : a <= b -> a / weight <= b / weight.
Proof. intros le. apply Rmult_le_compat_r; auto. left. now apply Rinv_0_lt_compat. Qed.

(** The headrooms of neighbours differ at one place too. *)
Lemma headrooms_replaced m before v v' after : length m = length (before ++ v :: after) ->
  exists h u h', headrooms m (before ++ v :: after) = h ++ (u - v) :: h' /\
                 headrooms m (before ++ v' :: after) = h ++ (u - v') :: h'.
Proof.
  revert m. induction before as [|b before IH]; intros [|u m] same; try discriminate; simpl in *.
  - now exists [], u, (headrooms m after).
  - destruct (IH m ltac:(lia)) as (h & w & h' & -> & ->). now exists ((u - b) :: h), w, h'.
Qed.

Lemma valid_length m x : valid_terms m x -> length m = length x.
Proof. induction 1; simpl; auto. Qed.

Lemma weighted_nested x c : valid_terms limits x -> nested c (bounds_of x).
Proof.
  intros ok. destruct rounds as [mono most]. split.
  - simpl. unfold top. simpl. destruct is_capped; f_equal; f_equal; lra.
  - intros l _. simpl. split.
    + apply mono, over_weight. rewrite !lower_low by auto. apply low_next. now apply terms_nonneg with limits.
    + destruct is_capped.
      * apply mono, over_weight. rewrite !upper_low by auto.
        assert (inc := low_next _ (headrooms_nonneg _ _ ok) l). lra.
      * destruct l; [apply most | lra].
Qed.

(** The bounds of a weighted mean satisfy Definition 3.4 ... *)
Theorem weighted_one_rank_apart x x' c : replace_term limits x x' -> one_rank_apart c (bounds_of x) (bounds_of x').
Proof.
  intros (ok & ok' & before & v & v' & after & -> & ->) l _. destruct rounds as [mono most]. simpl. split.
  - destruct is_capped; [|destruct l; [apply most | lra]].
    apply mono, over_weight. rewrite !upper_low by auto.
    destruct (headrooms_replaced limits before v v' after (valid_length _ _ ok)) as (h & u & h' & same & same').
    assert (pos := headrooms_nonneg _ _ ok). rewrite same in pos. rewrite same, same'.
    assert (inc := low_replaced h (u - v) (u - v') h' pos l). lra.
  - apply mono, over_weight. rewrite !lower_low by auto. apply low_replaced. now apply terms_nonneg with limits.
Qed.

(** ... and are one-directed. *)
Theorem weighted_one_directed before v v' after c : v <= v' ->
  valid_terms limits (before ++ v :: after) -> valid_terms limits (before ++ v' :: after) ->
  below c (bounds_of (before ++ v :: after)) (bounds_of (before ++ v' :: after)).
Proof.
  intros grows ok ok' l _. destruct rounds as [mono most].
  assert (lows := low_grows before v v' after grows). simpl. split.
  - apply mono, over_weight. now rewrite !lower_low by auto.
  - destruct is_capped.
    + apply mono, over_weight. rewrite !upper_low by auto.
      destruct (headrooms_replaced limits before v v' after (valid_length _ _ ok)) as (h & u & h' & -> & ->).
      assert (inc := low_grows h (u - v') (u - v) h' ltac:(lra) l). lra.
    + destruct l; [|lra]. apply mono, over_weight. specialize (lows 0%nat). now rewrite !low_0 in lows.
Qed.

End Weighted.

(** So a weighted mean, or one over groups, released by hazard selection, is private. *)
Theorem private_weighted_mean_is_private eps q grid last capacity round is_capped weight t_max limits :
  exp (- (eps / INR share_monotonic)) <= q <= 1 -> rounding round t_max -> 0 < weight ->
  private eps (replace_term limits) (private_weighted_mean q grid last capacity round is_capped weight t_max limits).
Proof.
  intros ratio rounds pos x x' pair.
  assert (back : replace_term limits x' x).
  { destruct pair as (ok & ok' & before & v & v' & after & -> & ->). split; [|split]; auto.
    now exists before, v', v, after. }
  assert (apart := fun c => weighted_one_rank_apart round is_capped weight t_max limits rounds pos _ _ c pair).
  assert (apart' := fun c => weighted_one_rank_apart round is_capped weight t_max limits rounds pos _ _ c back).
  destruct pair as (ok & ok' & before & v & v' & after & -> & ->). unfold private_weighted_mean.
  destruct (Rle_dec v v') as [grows | falls].
  - apply release_private_monotonic; auto using weighted_nested, weighted_one_directed.
  - apply and_comm, release_private_monotonic; auto using weighted_nested.
    apply weighted_one_directed; auto. lra.
Qed.
