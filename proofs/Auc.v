(** 1 - AUC under replace_one (classification, B; [ranking_bounds] in score_bounds.py). *)
From Coq Require Import Reals Lra Lia List ZArith.
From DP Require Import Constants Laws HazardRelease OutputBounds MeanLoss Least Leavings.
Import ListNotations.
Open Scope R_scope.

(** ** Definitions *)

(** A record: whether it is positive, and its score. Neighbours: one record is replaced by any other. *)
Definition record : Type := bool * R.
Definition replace_record (x x' : list record) : Prop :=
  exists before r r' after, x = before ++ r :: after /\ x' = before ++ r' :: after.

(** Twice the loss of a pair: 2 if it is a positive and a negative with the higher score, 1 if they are tied. *)
Definition pair_loss (r r' : record) : R :=
  match r, r' with
  | (true, s), (false, s') => if Rlt_dec s s' then 2 else if Rlt_dec s' s then 0 else 1
  | _, _ => 0
  end.
Definition twice_loss (x : list record) : R := sum_of (fun r => sum_of (pair_loss r) x) x.

Fixpoint positives (x : list record) : nat :=
  match x with [] => 0 | (p, _) :: x => (if p then 1 else 0) + positives x end.
Definition negatives (x : list record) : nat := length x - positives x.
Definition smaller (x : list record) : nat := min (positives x) (negatives x).

(** Twice the number of pairs among n records of which P are positive, and the most of them for P = p, ..., p + l. *)
Definition pairs (n P : nat) : R := INR (2 * P * (n - P)).
Definition most_pairs (n p l : nat) : R := greatest_of (map (fun i => pairs n (p + i)) (seq 0 (S l))).

(** L^l: the least loss that is left when l records are dropped, over the most pairs that l others can make; 0
    once a whole class can be replaced, and 1/2 if there is no pair. (The program drops the lowest positives and
    the highest negatives only, which is best: that is on paper, and tested by brute force.) *)
Definition lowest_loss (l : nat) (x : list record) : R :=
  if (l <? smaller x)%nat
  then least_of (map (fun y => twice_loss y / most_pairs (length x) (positives y) l) (leavings l x))
  else if (l =? 0)%nat then 1 / 2 else 0.

Definition negated (x : list record) : list record := map (fun r => (fst r, - snd r)) x.

(** U^l is 1 less L^l of the negated scores. Each bound is rounded once. *)
Definition auc_bounds (round : R -> R) (x : list record) : bounds :=
  {| lower l := round (lowest_loss l x); upper l := round (1 - lowest_loss l (negated x)) |}.

Definition private_auc (q : R) (public : nat -> settings) (round : R -> R) (x : list record) : law nat :=
  let n := length x in
  hazard_release power_general q (grid (public n)) (last (public n)) (min (capacity (public n)) n)
    (auc_bounds round x).

(** ** Facts *)

Lemma pair_loss_range r r' : 0 <= pair_loss r r' <= 2.
Proof. destruct r as [[] s], r' as [[] s']; simpl; try lra. destruct (Rlt_dec s s'), (Rlt_dec s' s); lra. Qed.

Lemma twice_loss_nonneg x : 0 <= twice_loss x.
Proof. apply sum_of_nonneg. intros r _. apply sum_of_nonneg. intros r' _. apply pair_loss_range. Qed.

Lemma twice_loss_drops y y' : drops y y' -> twice_loss y' <= twice_loss y.
Proof.
  intros (before & r & after & -> & ->). unfold twice_loss.
  assert (row : forall r', sum_of (pair_loss r') (before ++ after) <= sum_of (pair_loss r') (before ++ r :: after)).
  { intros r'. rewrite !sum_of_app. simpl. assert (p := pair_loss_range r' r). lra. }
  rewrite !sum_of_app. cbn [sum_of].
  assert (own : 0 <= sum_of (pair_loss r) (before ++ r :: after)).
  { apply sum_of_nonneg. intros r' _. apply pair_loss_range. }
  assert (left := sum_of_le (fun r' => sum_of (pair_loss r') (before ++ after))
    (fun r' => sum_of (pair_loss r') (before ++ r :: after)) before (fun r' _ => row r')).
  assert (right := sum_of_le (fun r' => sum_of (pair_loss r') (before ++ after))
    (fun r' => sum_of (pair_loss r') (before ++ r :: after)) after (fun r' _ => row r')).
  lra.
Qed.

Lemma positives_app x y : positives (x ++ y) = (positives x + positives y)%nat.
Proof. induction x as [|[p s] x IH]; simpl; [auto | rewrite IH; lia]. Qed.

Lemma positives_drops y y' : drops y y' -> (positives y' <= positives y <= positives y' + 1)%nat.
Proof. intros (before & [p s] & after & -> & ->). rewrite !positives_app. simpl. destruct p; lia. Qed.

Lemma positives_left l x y : In y (leavings l x) -> (positives y <= positives x <= positives y + l)%nat.
Proof.
  revert l y. induction x as [|[p s] x IH]; intros [|l] y; simpl.
  - intros [<-|[]]. simpl. lia.
  - easy.
  - intros [<-|[]]. simpl. lia.
  - intros into. apply in_app_iff in into. destruct into as [into | into].
    + apply in_map_iff in into. destruct into as (z & <- & into). apply IH in into. simpl. lia.
    + apply IH in into. destruct p; lia.
Qed.

Lemma positives_le x : (positives x <= length x)%nat.
Proof. induction x as [|[p s] x IH]; simpl; [auto | destruct p; lia]. Qed.

Lemma greatest_of_ge a v : In v a -> v <= greatest_of a.
Proof.
  induction a as [|w a IH]; [easy|]. intros into. destruct a as [|w' a].
  - destruct into as [->|[]]. simpl. lra.
  - change (greatest_of (w :: w' :: a)) with (Rmax w (greatest_of (w' :: a))).
    destruct into as [-> | into]; [apply Rmax_l|]. apply Rle_trans with (2 := Rmax_r _ _). now apply IH.
Qed.

Lemma greatest_of_lub a m : a <> [] -> (forall v, In v a -> v <= m) -> greatest_of a <= m.
Proof.
  induction a as [|w a IH]; [easy|]. intros _ le. destruct a as [|w' a]; [simpl; apply le; now left|].
  change (greatest_of (w :: w' :: a)) with (Rmax w (greatest_of (w' :: a))).
  apply Rmax_lub; [apply le; now left|]. apply IH; [easy|]. intros v into. apply le. now right.
Qed.

Lemma most_pairs_ge n p l i : (i <= l)%nat -> pairs n (p + i) <= most_pairs n p l.
Proof. intros le. apply greatest_of_ge, in_map_iff. exists i. split; auto. apply in_seq. lia. Qed.

(** One record more can be chosen freely. *)
Lemma most_pairs_next n p p' l : (p' <= p <= p' + 1)%nat -> most_pairs n p l <= most_pairs n p' (S l).
Proof.
  intros near. apply greatest_of_lub; [easy|]. intros v into. apply in_map_iff in into.
  destruct into as (i & <- & into). apply in_seq in into.
  replace (p + i)%nat with (p' + (p - p' + i))%nat by lia. apply most_pairs_ge. lia.
Qed.

Lemma most_pairs_pos l x y : In y (leavings l x) -> (l < smaller x)%nat -> 0 < most_pairs (length x) (positives y) l.
Proof.
  intros into lt. assert (near := positives_left l x y into). unfold smaller, negatives in lt.
  apply Rlt_le_trans with (pairs (length x) (positives y + (positives x - positives y))).
  - unfold pairs. apply lt_0_INR. replace (positives y + _)%nat with (positives x) by lia. nia.
  - apply most_pairs_ge. lia.
Qed.

Lemma leavings_map_some {B} (f : list record -> B) l x : (l <= length x)%nat -> map f (leavings l x) <> [].
Proof. intros le none. apply map_eq_nil in none. now apply (leavings_exist l x le). Qed.

Lemma smaller_le x : (smaller x <= length x)%nat.
Proof. unfold smaller, negatives. lia. Qed.

Lemma lowest_loss_nonneg l x : 0 <= lowest_loss l x.
Proof.
  unfold lowest_loss. destruct (Nat.ltb_spec l (smaller x)) as [lt | ge]; [|destruct (l =? 0)%nat; lra].
  assert (m := smaller_le x).
  assert (into := least_of_in _ (leavings_map_some
    (fun y => twice_loss y / most_pairs (length x) (positives y) l) l x ltac:(lia))).
  apply in_map_iff in into. destruct into as (y & <- & into).
  apply Rmult_le_pos; [apply twice_loss_nonneg | left; now apply Rinv_0_lt_compat, most_pairs_pos].
Qed.

(** What is left of x, less one record, is left of x' when one more is dropped: then L^(l+1) of x' is at most
    L^l of x. *)
Lemma lowest_loss_step l x x' : length x' = length x -> (smaller x' <= smaller x + 1)%nat ->
  (forall y, In y (leavings l x) -> y <> [] -> exists y', In y' (leavings (S l) x') /\ drops y y') ->
  lowest_loss (S l) x' <= lowest_loss l x.
Proof.
  intros size near step. assert (nn := lowest_loss_nonneg l x). unfold lowest_loss in *.
  destruct (Nat.ltb_spec (S l) (smaller x')) as [lt' | ge']; [|auto].
  destruct (Nat.ltb_spec l (smaller x)) as [lt | ge]; [|lia].
  assert (m := smaller_le x).
  assert (into := least_of_in _ (leavings_map_some
    (fun y => twice_loss y / most_pairs (length x) (positives y) l) l x ltac:(lia))).
  apply in_map_iff in into. destruct into as (y & <- & into).
  assert (long := leavings_length _ _ _ into).
  destruct (step y into ltac:(intros ->; simpl in long; lia)) as (y' & into' & less).
  apply Rle_trans with (twice_loss y' / most_pairs (length x') (positives y') (S l)).
  - apply least_of_le, in_map_iff. now exists y'.
  - rewrite size. apply quotient_le; [apply twice_loss_nonneg | now apply twice_loss_drops|].
    split; [now apply most_pairs_pos | now apply most_pairs_next, positives_drops].
Qed.

Lemma replaced_length x x' : replace_record x x' -> length x' = length x.
Proof. intros (before & r & r' & after & -> & ->). now rewrite !app_length. Qed.

Lemma smaller_near x x' : replace_record x x' -> (smaller x' <= smaller x + 1)%nat.
Proof.
  intros pair. assert (size := replaced_length _ _ pair). assert (le := positives_le x).
  assert (le' := positives_le x').
  unfold smaller, negatives. rewrite size in *. destruct pair as (before & [p s] & [p' s'] & after & -> & ->).
  rewrite !positives_app in *. simpl in *. destruct p, p'; lia.
Qed.

Lemma lowest_loss_replaced l x x' : replace_record x x' -> lowest_loss (S l) x' <= lowest_loss l x.
Proof.
  intros pair. apply lowest_loss_step; [now apply replaced_length | now apply smaller_near|].
  destruct pair as (before & r & r' & after & -> & ->). intros. now apply drop_changed with r.
Qed.

Lemma negated_replaced x x' : replace_record x x' -> replace_record (negated x) (negated x').
Proof.
  intros (before & r & r' & after & -> & ->). unfold negated. rewrite !map_app. cbn [map].
  now exists (negated before), (fst r, - snd r), (fst r', - snd r'), (negated after).
Qed.

(** ** The loss and that of the negated scores add up to 1 *)

Lemma positives_negated x : positives (negated x) = positives x.
Proof. induction x as [|[p s] x IH]; simpl; auto. Qed.

Lemma negated_length x : length (negated x) = length x.
Proof. apply map_length. Qed.

Lemma sum_of_plus {A} (f g : A -> R) l : sum_of f l + sum_of g l = sum_of (fun a => f a + g a) l.
Proof. induction l; simpl; [|rewrite <- IHl]; ring. Qed.

Lemma losses_add_up x : twice_loss x + twice_loss (negated x) = pairs (length x) (positives x).
Proof.
  unfold twice_loss, negated. rewrite sum_of_map, sum_of_plus.
  assert (row : forall r : record, sum_of (pair_loss r) x + sum_of (pair_loss (fst r, - snd r))
    (map (fun r => (fst r, - snd r)) x)
    = if fst r then 2 * INR (negatives x) else 0).
  { intros [p s]. rewrite sum_of_map, sum_of_plus. cbn [fst snd]. unfold negatives. assert (le := positives_le x).
    induction x as [|[p' s'] x IH]; [simpl; destruct p; lra|]. cbn [sum_of fst snd length positives].
    assert (le' := positives_le x). rewrite IH by auto. destruct p; [|simpl; lra].
    destruct p'; [simpl; replace (S (length x) - S (positives x))%nat with (length x - positives x)%nat by lia; lra|].
    replace (S (length x) - (0 + positives x))%nat with (S (length x - positives x)) by lia. rewrite S_INR. simpl.
    destruct (Rlt_dec s s'), (Rlt_dec s' s), (Rlt_dec (- s) (- s')), (Rlt_dec (- s') (- s)); lra. }
  rewrite (sum_of_ext _ (fun r : record => if fst r then 2 * INR (negatives x) else 0)) by (intros; apply row).
  clear row.
  unfold pairs. rewrite !mult_INR. fold (negatives x). simpl (INR 2). generalize (negatives x). intros n.
  induction x as [|[p s] x IH]; cbn [sum_of fst positives]; [simpl; ring|].
  rewrite IH, plus_INR. destruct p; simpl (INR _); ring.
Qed.

(** ** Definition 3.4 *)

Section Auc.

Variable round : R -> R.
Hypothesis rounds : forall a b, a <= b -> round a <= round b.

Lemma auc_nested x c : (c <= length x)%nat -> nested c (auc_bounds round x).
Proof.
  intros few. split.
  - cbn [lower upper auc_bounds]. f_equal. unfold lowest_loss, smaller, negatives.
    rewrite !leavings_0, !positives_negated, !negated_length. fold (negatives x). fold (smaller x).
    destruct (Nat.ltb_spec 0 (smaller x)) as [some | none]; [|simpl; lra]. cbn [map least_of].
    rewrite positives_negated.
    assert (only : most_pairs (length x) (positives x) 0 = pairs (length x) (positives x))
      by (unfold most_pairs; simpl; now rewrite Nat.add_0_r).
    rewrite only, <- (losses_add_up x).
    assert (pos : 0 < twice_loss x + twice_loss (negated x)).
    { rewrite losses_add_up. unfold pairs. apply lt_0_INR. unfold smaller, negatives in some. nia. }
    field. lra.
  - intros l lt. cbn [lower upper auc_bounds].
    assert (own : forall y, lowest_loss (S l) y <= lowest_loss l y).
    { intros y. apply lowest_loss_step; [auto | lia|]. intros. now apply drop_any. }
    split; apply rounds; [apply own|]. specialize (own (negated x)). lra.
Qed.

(** The bounds of 1 - AUC satisfy Definition 3.4 (they do not move in one direction). *)
Theorem auc_one_rank_apart x x' c : replace_record x x' ->
  one_rank_apart c (auc_bounds round x) (auc_bounds round x').
Proof.
  intros pair l _. cbn [lower upper auc_bounds]. split; apply rounds.
  - assert (less := lowest_loss_replaced l _ _ (negated_replaced _ _ pair)). lra.
  - now apply lowest_loss_replaced.
Qed.

End Auc.

(** So 1 - AUC, released by hazard selection with power 5 and epsilon/5, is private, given public settings. *)
Theorem private_auc_is_private eps q public round :
  exp (- (eps / INR share_general)) <= q <= 1 -> (forall a b, a <= b -> round a <= round b) ->
  private eps replace_record (private_auc q public round).
Proof.
  intros ratio rounds.
  assert (way : forall x x', replace_record x x' ->
    within eps (private_auc q public round x) (private_auc q public round x')).
  { intros x x' pair. assert (size := replaced_length _ _ pair).
    assert (back : replace_record x' x).
    { destruct pair as (before & r & r' & after & -> & ->). now exists before, r', r, after. }
    unfold private_auc. rewrite size. set (c := min (capacity (public (length x))) (length x)).
    assert (few : (c <= length x)%nat) by apply Nat.le_min_r.
    apply release_private_general; auto using auc_nested, auc_one_rank_apart.
    apply auc_nested; auto. lia. }
  intros x x' pair. split; apply way; auto.
  destruct pair as (before & r & r' & after & -> & ->). now exists before, r', r, after.
Qed.
