(** The second stage of the default for a variance: the least clipped sum of squares (theory, 6;
    [clipped_squares] in variance_windows.py). *)
From Coq Require Import Reals Lra Lia List ZArith.
From DP Require Import Constants Laws HazardRelease OutputBounds MeanLoss Least Leavings Variance AddRemove Lipschitz
  Staircase Adaptive.
Import ListNotations.
Open Scope R_scope.

(** ** Definitions *)

(** The squares of the distances to a centre m, each at most C. *)
Definition clipped_about (C m : R) (x : list R) : R := total (map (fun v => Rmin ((v - m) * (v - m)) C) x).

(** T: the least of C l + the least sum of squares when l values are left out. *)
Definition clipped_squares (C : R) (x : list R) : R :=
  least_to (length x) C {| lower l := least_spread l x; upper l := 0 |}.

(** Noise on T, after any first stage that draws the scale. *)
Definition variance_stages (eps_b : R) (public : nat -> stages) (first : list R -> law nat) (x : list R) :
    law (nat * nat) :=
  then_ (first x) (noisy_sum eps_b (public (length x)) (fun C => clipped_squares C x)).

(** ** T is the least clipped sum over all centres *)

Lemma clipped_le_kept C m l x y : In y (leavings l x) -> clipped_about C m x <= about m y + INR l * C.
Proof.
  revert l y. induction x as [|v x IH]; intros l y into.
  - destruct l; simpl in into; [|easy]. destruct into as [<-|[]]. unfold clipped_about, about. simpl. lra.
  - unfold clipped_about. cbn [map total]. fold (clipped_about C m x).
    assert (near := Rmin_l ((v - m) * (v - m)) C). assert (far := Rmin_r ((v - m) * (v - m)) C).
    assert (cases : (exists z, y = v :: z /\ In z (leavings l x)) \/ (exists l', l = S l' /\ In y (leavings l' x))).
    { destruct l as [|l]; simpl in into.
      - destruct into as [<-|[]]. left. exists x. rewrite leavings_0. split; [auto | now left].
      - apply in_app_iff in into. destruct into as [into | into]; [left | right; now exists l].
        apply in_map_iff in into. destruct into as (z & <- & into). now exists z. }
    destruct cases as [(z & -> & rest) | (l' & -> & rest)]; specialize (IH _ _ rest).
    + unfold about. cbn [map total]. fold (about m z). lra.
    + rewrite S_INR. lra.
Qed.

Lemma clipped_is_kept C m x : exists l y, In y (leavings l x) /\ clipped_about C m x = about m y + INR l * C.
Proof.
  induction x as [|v x (l & y & into & same)].
  - exists 0%nat, []. split; [now left|]. unfold clipped_about, about. simpl. ring.
  - unfold clipped_about. cbn [map total]. fold (clipped_about C m x). rewrite same.
    destruct (Rle_dec ((v - m) * (v - m)) C) as [near | far].
    + exists l, (v :: y). split; [now apply leavings_keep|]. rewrite Rmin_left by auto.
      unfold about. cbn [map total]. ring.
    + exists (S l), y. split; [now apply leavings_drop|]. rewrite Rmin_right, S_INR by lra. ring.
Qed.

(** [least_to] is reached. *)
Lemma least_to_reached c C b : exists l, (l <= c)%nat /\ least_to c C b = lower b l + INR l * C.
Proof.
  induction c as [|c (l & le & same)].
  - exists 0%nat. split; auto. simpl. ring.
  - cbn [least_to]. unfold Rmin. destruct (Rle_dec (lower b (S c) + INR (S c) * C) (least_to c C b)).
    + now exists (S c).
    + exists l. split; [lia | auto].
Qed.

Theorem clipped_squares_is_least C x :
  (forall m, clipped_squares C x <= clipped_about C m x) /\ exists m, clipped_squares C x = clipped_about C m x.
Proof.
  assert (least : forall m, clipped_squares C x <= clipped_about C m x).
  { intros m. destruct (clipped_is_kept C m x) as (l & y & into & ->). assert (size := leavings_length _ _ _ into).
    apply Rle_trans with (1 := least_to_le (length x) C _ l ltac:(lia)). simpl. apply Rplus_le_compat_r.
    apply Rle_trans with (2 := sum_squares_least m y). now apply least_of_le, in_map. }
  split; auto. destruct (least_to_reached (length x) C {| lower l := least_spread l x;
  upper l := 0 |}) as (l & le & same).
  simpl lower in same. fold (clipped_squares C x) in same.
  assert (some : map sum_squares (leavings l x) <> []).
  { assert (ex := leavings_exist l x le). now destruct (leavings l x). }
  assert (into := least_of_in _ some). fold (least_spread l x) in into.
  apply in_map_iff in into. destruct into as (y & spread & into). rewrite <- spread in same.
  exists (total y / INR (length y)). apply Rle_antisym; auto. rewrite same.
  destruct y as [|v y]; [|rewrite (sum_squares_mean (v :: y)) by (simpl; lia); now apply clipped_le_kept].
  assert (le0 := clipped_le_kept C (total [] / INR (length (@nil R))) l x [] into). unfold about in le0.
  simpl map in le0. unfold sum_squares. simpl in *. lra.
Qed.

(** ** How far it moves *)

Lemma clipped_about_app C m x y : clipped_about C m (x ++ y) = clipped_about C m x + clipped_about C m y.
Proof. unfold clipped_about. now rewrite map_app, total_app. Qed.

(** When a record is added it grows by 0 to C ... *)
Theorem clipped_squares_grow C before v after : 0 <= C ->
  clipped_squares C (before ++ after) <= clipped_squares C (before ++ v :: after)
    <= clipped_squares C (before ++ after) + C.
Proof.
  intros C0. assert (one : forall m, clipped_about C m (before ++ after) <= clipped_about C m (before ++ v :: after)
    <= clipped_about C m (before ++ after) + C).
  { intros m. rewrite !clipped_about_app.
    change (clipped_about C m (v :: after)) with (Rmin ((v - m) * (v - m)) C + clipped_about C m after).
    assert (top := Rmin_r ((v - m) * (v - m)) C). assert (s := Rle_0_sqr (v - m)). unfold Rsqr in s.
    assert (bottom := Rmin_glb ((v - m) * (v - m)) C 0 s C0). lra. }
  destruct (clipped_squares_is_least C (before ++ after)) as [least (m & reached)].
  destruct (clipped_squares_is_least C (before ++ v :: after)) as [least' (m' & reached')]. split.
  - rewrite reached'. apply Rle_trans with (1 := least m'). apply one.
  - rewrite reached. apply Rle_trans with (1 := least' m). apply one.
Qed.

(** ... so it moves by at most C when one is replaced. *)
Theorem clipped_squares_move C x x' valid : 0 <= C -> replace_one valid x x' ->
  Rabs (clipped_squares C x - clipped_squares C x') <= C.
Proof.
  intros C0 (_ & _ & before & v & v' & after & -> & ->).
  assert (g := clipped_squares_grow C before v after C0). assert (g' := clipped_squares_grow C before v' after C0).
  apply Rabs_le. lra.
Qed.

(** T / n is never above the variance. *)
Lemma clipped_squares_below C x : clipped_squares C x <= sum_squares x.
Proof.
  apply Rle_trans with (1 := least_to_le (length x) C _ 0 ltac:(lia)). simpl. unfold least_spread.
  rewrite leavings_0. simpl. lra.
Qed.

(** ** Both stages *)

(** Any private first stage, of whose outcome the scale is made, and noise on T: together they cost the sum. *)
Theorem variance_stages_private eps_a eps_b valid public first : 0 < eps_b -> valid_stages public ->
  private eps_a (replace_one valid) first ->
  (forall x, NoDup (outcomes (first x)) /\ forall drawn, 0 <= mass (first x) drawn) ->
  private (eps_a + eps_b) (replace_one valid) (variance_stages eps_b public first).
Proof.
  intros b0 [counts scales] private_first laws.
  assert (way : forall x x', replace_one valid x x' ->
    within (eps_a + eps_b) (variance_stages eps_b public first x) (variance_stages eps_b public first x')).
  { intros x x' pair.
    assert (size : length x' = length x).
    { destruct pair as (_ & _ & before & v & v' & after & -> & ->). rewrite !app_length. reflexivity. }
    unfold variance_stages. rewrite size. apply scale_then_noise_private; auto.
    - apply counts.
    - apply laws.
    - intros drawn _. apply laws.
    - apply (private_first _ _ pair).
    - intros C C0. apply clipped_squares_move with (2 := pair). lra. }
  intros x x' pair. split; apply way; auto. now apply replace_one_sym.
Qed.
