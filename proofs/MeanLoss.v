(** The mean of losses under replace_one: its output bounds, and its release, end to end (theory, 1 and 3;
    [MeanStats.bounds] in quantities/mean.py). *)
From Coq Require Import Reals Lra Lia List ZArith Permutation Sorted.
From DP Require Import Constants Laws HazardLaw HazardRelease OutputBounds.
Import ListNotations.
Open Scope R_scope.

(** ** Definitions *)

(** A data set is the list of its losses. Neighbours: one record is replaced by another valid one. *)
Definition replace_one (valid : R -> Prop) (x x' : list R) : Prop :=
  Forall valid x /\ Forall valid x' /\
  exists before v v' after, x = before ++ v :: after /\ x' = before ++ v' :: after.

Fixpoint total (x : list R) : R := match x with [] => 0 | v :: x => v + total x end.

(** In descending order. *)
Fixpoint insert (v : R) (x : list R) : list R :=
  match x with [] => [v] | u :: x => if Rle_dec u v then v :: u :: x else u :: insert v x end.
Fixpoint descending (x : list R) : list R := match x with [] => [] | v :: x => insert v (descending x) end.

(** The sum of the [l] largest, and of the [l] smallest losses. *)
Definition top (l : nat) (x : list R) : R := total (firstn l (descending x)).
Definition bottom (l : nat) (x : list R) : R := total (firstn l (rev (descending x))).

(** The program's exact numbers: L^l = (S - top_l) / n and U^l = (S - bot_l + l B) / n. *)
Definition lower_mean (x : list R) (l : nat) : R := (total x - top l x) / INR (length x).
Definition upper_mean (B : R) (x : list R) (l : nat) : R :=
  (total x - bottom l x + INR l * B) / INR (length x).

(** Each is rounded once. Without a cap, every U^l but f is the public limit [t_max]. *)
Definition mean_bounds (round : R -> R) (cap : option R) (t_max : R) (x : list R) : bounds :=
  {| lower l := round (lower_mean x l);
     upper l := match cap with
                | Some B => round (upper_mean B x l)
                | None => match l with O => round (lower_mean x 0) | S _ => t_max end
                end |}.

(** A valid loss: not negative, and at most the cap if there is one. *)
Definition valid_loss (cap : option R) (v : R) : Prop :=
  0 <= v /\ match cap with Some B => v <= B | None => True end.

(** Rounding: never reverses an inequality, and saturates at the public limit. *)
Definition rounding (round : R -> R) (t_max : R) : Prop :=
  (forall a b, a <= b -> round a <= round b) /\ (forall a, round a <= t_max).

(** Public settings of a release, which may depend on the number of records: outputs grid 0, ..., grid last,
    and how many ranks have bounds of their own. *)
Record settings := Settings { grid : nat -> R; last : nat; capacity : nat }.

(** [private_mean_loss] of the program with hazard selection: the number of the output. *)
Definition private_mean_loss (q : R) (public : nat -> settings) (round : R -> R) (cap : option R) (t_max : R)
    (x : list R) : law nat :=
  let n := length x in
  hazard_release power_monotonic q (grid (public n)) (last (public n)) (min (capacity (public n)) n)
    (mean_bounds round cap t_max x).

(** ** Sums without the largest: the least that is left when at most [l] terms are dropped *)

Fixpoint low (l : nat) (x : list R) : R :=
  match x with
  | [] => 0
  | v :: x => match l with O => v + low 0 x | S l' => Rmin (v + low l x) (low l' x) end
  end.

Definition nonneg (v : R) : Prop := 0 <= v.

Lemma low_0 x : low 0 x = total x.
Proof. induction x; simpl; [|rewrite IHx]; reflexivity. Qed.

Lemma low_next x : Forall nonneg x -> forall l, low (S l) x <= low l x.
Proof.
  unfold nonneg. induction x as [|v x IH]; intros pos l; [simpl; lra|].
  inversion pos as [|v' y v0 pos']; subst. specialize (IH pos'). cbn [low]. destruct l as [|l].
  - apply Rle_trans with (1 := Rmin_r _ _). lra.
  - apply Rmin_glb.
    + apply Rle_trans with (1 := Rmin_l _ _). specialize (IH (S l)). lra.
    + apply Rle_trans with (1 := Rmin_r _ _). apply IH.
Qed.

Lemma low_perm x x' : Permutation x x' -> forall l, low l x = low l x'.
Proof.
  intros perm. induction perm; intros m; simpl; auto.
  - destruct m; now rewrite ?IHperm.
  - destruct m as [|[|m]]; [ring | |]; unfold Rmin; repeat destruct Rle_dec; lra.
  - now rewrite IHperm1.
Qed.

Definition sorted : list R -> Prop := StronglySorted (fun u v => v <= u).

Lemma low_sorted x : sorted x -> Forall nonneg x -> forall l, low l x = total x - total (firstn l x).
Proof.
  unfold nonneg. intros order. induction order as [|v x order IH small]; intros pos l; [destruct l; simpl; lra|].
  inversion pos as [|v' x' v0 pos']; subst. specialize (IH pos').
  destruct l as [|l]; [simpl; rewrite low_0; ring|]. cbn [low firstn total]. rewrite !IH, Rmin_right; [ring|].
  assert (next : total (firstn (S l) x) <= v + total (firstn l x)); [|lra].
  clear - small v0. revert l. induction small as [|u x le small IH]; intros l; [destruct l; simpl; lra|].
  destruct l as [|l]; [simpl; lra|]. specialize (IH l). cbn [firstn total] in *. lra.
Qed.

Lemma insert_perm v x : Permutation (v :: x) (insert v x).
Proof.
  induction x as [|u x IH]; simpl; auto. destruct (Rle_dec u v); auto.
  apply perm_trans with (u :: v :: x); [constructor | now constructor].
Qed.

Lemma descending_perm x : Permutation x (descending x).
Proof.
  induction x as [|v x IH]; simpl; auto. apply perm_trans with (2 := insert_perm v _). now constructor.
Qed.

Lemma insert_sorted v x : sorted x -> sorted (insert v x).
Proof.
  intros order. induction order as [|u x order IH small]; simpl.
  - repeat constructor.
  - destruct (Rle_dec u v) as [le | gt].
    + constructor; [now constructor|]. constructor; auto. now apply Forall_impl with (2 := small); intros; lra.
    + constructor; auto. apply Permutation_Forall with (1 := insert_perm v x). constructor; [lra | auto].
Qed.

Lemma descending_sorted x : sorted (descending x).
Proof. induction x; simpl; [constructor | now apply insert_sorted]. Qed.

(** S - top_l is the least sum that is left. *)
Lemma low_is_top l x : Forall nonneg x -> total x - top l x = low l x.
Proof.
  intros pos. assert (perm := descending_perm x). unfold top.
  rewrite (low_perm _ _ perm), low_sorted; [| apply descending_sorted | now apply Permutation_Forall with x].
  now rewrite <- !low_0, <- (low_perm _ _ perm).
Qed.

(** The headrooms B - v, and sums with the smallest losses raised to B, mirror this. *)
Definition headroom (B : R) (x : list R) : list R := map (fun v => B - v) x.

Lemma total_headroom B x : total (headroom B x) = INR (length x) * B - total x.
Proof. unfold headroom. induction x; cbn [map total length]; [simpl; ring|]. rewrite IHx, S_INR. ring. Qed.

Lemma rev_sorted B x : sorted x -> sorted (headroom B (rev x)).
Proof.
  unfold headroom. intros order. induction order as [|v x order IH small]; simpl; [constructor|].
  rewrite map_app. simpl. assert (ends : Forall (fun u => B - v <= u) (map (fun u => B - u) (rev x))).
  { apply Forall_map, Permutation_Forall with (1 := Permutation_rev x).
    now apply Forall_impl with (2 := small); intros; lra. }
  clear small order. induction IH as [|u y order IH small]; simpl; [repeat constructor|].
  inversion ends; subst. constructor; [now apply IH | apply Forall_app; auto].
Qed.

Lemma low_is_bottom B l x : Forall (fun v => v <= B) x -> (l <= length x)%nat ->
  total x - bottom l x + INR l * B = INR (length x) * B - low l (headroom B x).
Proof.
  intros le few. set (y := rev (descending x)).
  assert (perm : Permutation x y) by (apply perm_trans with (1 := descending_perm x), Permutation_rev).
  assert (size : length y = length x) by (symmetry; now apply Permutation_length).
  rewrite (low_perm _ (headroom B y)) by now apply Permutation_map.
  rewrite low_sorted.
  - assert (firsts : firstn l (headroom B y) = headroom B (firstn l y)) by (unfold headroom; apply firstn_map).
    rewrite firsts, !total_headroom, firstn_length, size, Nat.min_l by auto.
    replace (total y) with (total x) by (rewrite <- !low_0; now apply low_perm). unfold bottom. fold y. ring.
  - apply rev_sorted, descending_sorted.
  - apply Forall_map, Permutation_Forall with (1 := perm).
    now apply Forall_impl with (2 := le); intros; unfold nonneg; lra.
Qed.

(** ** One record replaced *)

(** One more term dropped makes up for any change of one record ... *)
Lemma low_replaced before v v' after : Forall nonneg (before ++ v :: after) ->
  forall l, low (S l) (before ++ v' :: after) <= low l (before ++ v :: after).
Proof.
  induction before as [|u before IH]; intros pos l; inversion pos as [|u' y u0 pos']; subst; cbn [app low].
  - apply Rle_trans with (low l after); [apply Rmin_r|].
    unfold nonneg in u0. destruct l as [|l]; [lra|].
    apply Rmin_glb; [lra | now apply low_next].
  - specialize (IH pos'). destruct l as [|l].
    + apply Rle_trans with (1 := Rmin_l _ _). specialize (IH 0%nat). lra.
    + apply Rmin_glb.
      * apply Rle_trans with (1 := Rmin_l _ _). specialize (IH (S l)). lra.
      * apply Rle_trans with (1 := Rmin_r _ _). apply IH.
Qed.

(** ... and where that record grows, all these sums grow. *)
Lemma low_grows before v v' after : v <= v' ->
  forall l, low l (before ++ v :: after) <= low l (before ++ v' :: after).
Proof.
  intros le. induction before as [|u before IH]; intros l; destruct l as [|l]; cbn [app low].
  - lra.
  - apply Rle_min_compat_r. lra.
  - specialize (IH 0%nat). lra.
  - apply Rmin_glb.
    + apply Rle_trans with (1 := Rmin_l _ _). specialize (IH (S l)). lra.
    + apply Rle_trans with (1 := Rmin_r _ _). apply IH.
Qed.

Lemma valid_nonneg {cap} x : Forall (valid_loss cap) x -> Forall nonneg x.
Proof. apply Forall_impl. now intros v [pos _]. Qed.

Lemma valid_headroom {cap} B x : cap = Some B -> Forall (valid_loss cap) x ->
  Forall (fun v => v <= B) x /\ Forall nonneg (headroom B x).
Proof.
  intros -> valid. assert (le : Forall (fun v => v <= B) x) by (revert valid; apply Forall_impl; now intros v []).
  split; auto. apply Forall_map. revert le. apply Forall_impl. unfold nonneg. intros; lra.
Qed.

Section Mean.

Variables (round : R -> R) (cap : option R) (t_max : R).
Hypothesis rounds : rounding round t_max.

Let bounds_of := mean_bounds round cap t_max.

(** The bounds in terms of [low]. *)
Lemma lower_is_low x l : Forall (valid_loss cap) x -> lower_mean x l = low l x / INR (length x).
Proof. intros valid. unfold lower_mean. rewrite low_is_top; auto. now apply (@valid_nonneg cap). Qed.

Lemma upper_is_low B x l : cap = Some B -> Forall (valid_loss cap) x -> (l <= length x)%nat ->
  upper_mean B x l = (INR (length x) * B - low l (headroom B x)) / INR (length x).
Proof.
  intros capped valid few. unfold upper_mean. rewrite low_is_bottom; auto. now apply (valid_headroom B x capped).
Qed.

Lemma over_n a b n : a <= b -> a / INR n <= b / INR n.
Proof.
  intros le. destruct n as [|n].
  - simpl. unfold Rdiv. destruct (Req_dec a b) as [->|]; [lra|]. rewrite Rinv_0. lra.
  - apply Rmult_le_compat_r; auto. left. apply Rinv_0_lt_compat, lt_0_INR. lia.
Qed.

Lemma mean_nested x c : Forall (valid_loss cap) x -> (c <= length x)%nat -> nested c (bounds_of x).
Proof.
  intros valid few. destruct rounds as [mono most]. assert (pos := valid_nonneg x valid). split.
  - unfold bounds_of, mean_bounds; simpl. destruct cap as [B|]; auto. f_equal.
    unfold lower_mean, upper_mean, top, bottom. simpl. f_equal. ring.
  - intros l lt. unfold bounds_of; simpl. split.
    + apply mono. rewrite !lower_is_low by auto. now apply over_n, low_next.
    + destruct cap as [B|] eqn:capped.
      * apply mono. rewrite <- capped in valid. rewrite !(upper_is_low B) by (auto; lia).
        apply over_n. assert (q := low_next _ (proj2 (valid_headroom B x capped valid)) l). lra.
      * destruct l; [apply most | lra].
Qed.

(** The output bounds of the mean satisfy Definition 3.4 ... *)
Theorem mean_one_rank_apart x x' c : replace_one (valid_loss cap) x x' -> (c <= length x)%nat ->
  one_rank_apart c (bounds_of x) (bounds_of x').
Proof.
  intros (valid & valid' & before & v & v' & after & -> & ->) few l lt. destruct rounds as [mono most].
  assert (size : length (before ++ v' :: after) = length (before ++ v :: after))
    by (rewrite !app_length; reflexivity).
  unfold bounds_of; simpl. split.
  - destruct cap as [B|] eqn:capped.
    + rewrite <- capped in valid, valid'. apply mono. rewrite !(upper_is_low B), size by (auto; lia). apply over_n.
      assert (pos := proj2 (valid_headroom B _ capped valid)). unfold headroom in *. rewrite !map_app in *.
      cbn [map] in *. assert (q := low_replaced _ _ (B - v') _ pos l). lra.
    + destruct l; [apply most | lra].
  - apply mono. rewrite !lower_is_low, size by auto. apply over_n.
    apply low_replaced. now apply (@valid_nonneg cap).
Qed.

(** ... and are one-directed: where the record that is replaced grows, all of them grow. *)
Theorem mean_one_directed before v v' after c : v <= v' ->
  Forall (valid_loss cap) (before ++ v :: after) -> Forall (valid_loss cap) (before ++ v' :: after) ->
  (c <= length (before ++ v :: after))%nat ->
  below c (bounds_of (before ++ v :: after)) (bounds_of (before ++ v' :: after)).
Proof.
  intros grows valid valid' few l le. destruct rounds as [mono _].
  assert (size : length (before ++ v' :: after) = length (before ++ v :: after))
    by (rewrite !app_length; reflexivity).
  assert (lows : round (lower_mean (before ++ v :: after) l) <= round (lower_mean (before ++ v' :: after) l)).
  { apply mono. rewrite !lower_is_low, size by auto. now apply over_n, low_grows. }
  split; auto. unfold bounds_of; simpl. destruct cap as [B|] eqn:capped.
  - rewrite <- capped in valid, valid'. apply mono. rewrite !(upper_is_low B), size by (auto; lia). apply over_n.
    unfold headroom. rewrite !map_app. cbn [map].
    assert (q := low_grows (map (fun u => B - u) before) (B - v') (B - v) (map (fun u => B - u) after) ltac:(lra) l).
    lra.
  - rewrite <- capped in valid, valid'. destruct l; [|lra].
    apply mono. rewrite !lower_is_low, size by auto. now apply over_n, low_grows.
Qed.

End Mean.

Lemma replace_one_sym valid x x' : replace_one valid x x' -> replace_one valid x' x.
Proof. intros (ok & ok' & before & v & v' & after & -> & ->). split; [|split]; auto.
now exists before, v', v, after. Qed.

(** Neighbours have the same number of records, so all that is public may depend on it. *)
Theorem size_is_public {A} eps valid (release : nat -> list R -> law A) :
  (forall n, private eps (replace_one valid) (release n)) ->
  private eps (replace_one valid) (fun x => release (length x) x).
Proof.
  intros each x x' pair. assert (same : length x' = length x).
  { destruct pair as (_ & _ & before & v & v' & after & -> & ->). now rewrite !app_length. }
  rewrite same. now apply each.
Qed.

(** The mean of losses, released by hazard selection, is epsilon-differentially private: for every public
    grid, every number of ranks, with and without a cap, every q with exp(-epsilon/4) <= q <= 1, and every
    rounding of the bounds. *)
Theorem private_mean_loss_is_private eps q public round cap t_max :
  exp (- (eps / INR share_monotonic)) <= q <= 1 -> rounding round t_max ->
  private eps (replace_one (valid_loss cap)) (private_mean_loss q public round cap t_max).
Proof.
  intros ratio rounds.
  assert (ordered : forall before v v' after, v <= v' ->
    Forall (valid_loss cap) (before ++ v :: after) -> Forall (valid_loss cap) (before ++ v' :: after) ->
    let release := private_mean_loss q public round cap t_max in
    within eps (release (before ++ v :: after)) (release (before ++ v' :: after)) /\
    within eps (release (before ++ v' :: after)) (release (before ++ v :: after))).
  { intros before v v' after grows valid valid' release. unfold release, private_mean_loss.
    assert (pair : replace_one (valid_loss cap) (before ++ v :: after) (before ++ v' :: after))
      by (split; [|split]; auto; now exists before, v, v', after).
    assert (size : length (before ++ v' :: after) = length (before ++ v :: after))
      by (rewrite !app_length; reflexivity).
    rewrite size. set (n := length (before ++ v :: after)). set (c := min (capacity (public n)) n).
    assert (few : (c <= n)%nat) by apply Nat.le_min_r.
    apply release_private_monotonic; auto.
    - now apply mean_nested.
    - apply mean_nested; auto. now rewrite size.
    - now apply mean_one_rank_apart.
    - apply mean_one_rank_apart; auto; [now apply replace_one_sym | now rewrite size].
    - now apply mean_one_directed. }
  intros x x' (valid & valid' & before & v & v' & after & -> & ->).
  destruct (Rle_dec v v') as [grows | falls]; [now apply ordered|].
  apply and_comm, ordered; auto. lra.
Qed.

(** And it is a probability law. *)
Theorem private_mean_loss_is_law q public round cap t_max x : 0 < q ->
  is_law (private_mean_loss q public round cap t_max x).
Proof. intros pos. apply hazard_is_law; [unfold power_monotonic; lia|]. intros k. now apply weight_pos. Qed.
