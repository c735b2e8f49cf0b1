(** Order statistics: the k-th largest loss and its output bounds (theory, 6;
    [order_statistic] in output_bounds.py). *)
From Coq Require Import Reals Lra Lia List ZArith Permutation Sorted.
From DP Require Import Laws OutputBounds MeanLoss AddRemove.
Import ListNotations.
Open Scope R_scope.

(** ** Definitions *)

(** The j-th largest loss, j = 1, 2, ...; 0 beyond the last, and beyond those that were kept. *)
Definition largest (kept : nat) (x : list R) (j : nat) : R :=
  if (j <=? kept)%nat then nth (j - 1) (descending x) 0 else 0.

(** L^l is the (k+l)-th largest, U^l the (k-l)-th, and the public limit from l = k on. *)
Definition order_bounds (limit : R) (kept k : nat) (x : list R) : bounds :=
  {| lower l := largest kept x (k + l);
     upper l := if (l <? k)%nat then largest kept x (k - l) else limit |}.

(** ** How many losses are at least [t] *)

Definition one_if (t v : R) : nat := if Rle_dec t v then 1 else 0.
Fixpoint at_least (t : R) (x : list R) : nat := match x with [] => 0 | v :: x => one_if t v + at_least t x end.

Lemma at_least_app t x x' : at_least t (x ++ x') = (at_least t x + at_least t x')%nat.
Proof. induction x; simpl; lia. Qed.

Lemma at_least_perm t x x' : Permutation x x' -> at_least t x = at_least t x'.
Proof. intros perm. induction perm; simpl; lia. Qed.

Lemma nth_at_least t x : 0 < t -> sorted x -> forall j, t <= nth j x 0 <-> (j < at_least t x)%nat.
Proof.
  intros t0 order. induction order as [|v x order IH small]; intros j.
  - destruct j; simpl; split; intros; lra || lia.
  - simpl at_least. unfold one_if. destruct (Rle_dec t v) as [le | gt].
    + destruct j; simpl; [split; intros; lra || lia|]. rewrite IH. lia.
    + assert (none : at_least t x = 0%nat).
      { clear - small gt. induction small as [|u x le small IH]; simpl; auto.
        unfold one_if. destruct (Rle_dec t u); [lra | auto]. }
      rewrite none. split; [|lia]. intros le. exfalso. destruct j; simpl in le; [lra|].
      apply IH in le. lia.
Qed.

Lemma nth_nonneg x j : Forall nonneg x -> 0 <= nth j x 0.
Proof.
  intros pos. destruct (Nat.lt_ge_cases j (length x)) as [into | beyond].
  - now apply (Forall_nth nonneg x).
  - rewrite nth_overflow; [lra | auto].
Qed.

Lemma descending_nonneg x : Forall nonneg x -> Forall nonneg (descending x).
Proof. apply Permutation_Forall, descending_perm. Qed.

Lemma nth_order i j x x' : Forall nonneg x' ->
  (forall t, (j < at_least t x)%nat -> (i < at_least t x')%nat) ->
  nth j (descending x) 0 <= nth i (descending x') 0.
Proof.
  intros pos more. assert (nn := nth_nonneg _ i (descending_nonneg x' pos)).
  destruct (Rle_dec (nth j (descending x) 0) 0) as [le | gt]; [lra|].
  apply nth_at_least; [lra | apply descending_sorted|].
  rewrite <- (at_least_perm _ _ _ (descending_perm x')). apply more.
  rewrite (at_least_perm _ _ _ (descending_perm x)).
  apply nth_at_least; [lra | apply descending_sorted | lra].
Qed.

Section Order.

Variables (limit : R) (kept k : nat).
Hypothesis limit_nonneg : 0 <= limit.
Hypothesis k1 : (1 <= k)%nat.

Let valid := valid_loss (Some limit).
Let bounds_of := order_bounds limit kept k.

Lemma valid_is_nonneg x : Forall valid x -> Forall nonneg x.
Proof. apply valid_nonneg. Qed.

Lemma largest_nonneg x j : Forall valid x -> 0 <= largest kept x j.
Proof.
  intros ok. unfold largest. destruct (j <=? kept)%nat; [|lra].
  apply nth_nonneg, descending_nonneg, valid_is_nonneg, ok.
Qed.

Lemma largest_le_limit x j : Forall valid x -> largest kept x j <= limit.
Proof.
  intros ok. unfold largest. destruct (j <=? kept)%nat; auto.
  assert (all : Forall valid (descending x)) by (apply Permutation_Forall with x; auto; apply descending_perm).
  destruct (Nat.lt_ge_cases (j - 1) (length (descending x))) as [into | beyond].
  - apply (Forall_nth valid (descending x)); auto.
  - rewrite nth_overflow; auto.
Qed.

(** Between neighbours, and within one data set, the next largest is no larger. *)
Lemma largest_falls x j : Forall valid x -> (1 <= j)%nat -> largest kept x (S j) <= largest kept x j.
Proof.
  intros ok j1. assert (nn := largest_nonneg x j ok). unfold largest in *.
  destruct (Nat.leb_spec (S j) kept), (Nat.leb_spec j kept); try lra; try lia.
  apply nth_order; [now apply valid_is_nonneg | intros; lia].
Qed.

Lemma largest_next x x' j : replace_one valid x x' -> (1 <= j)%nat -> largest kept x' (S j) <= largest kept x j.
Proof.
  intros (ok & ok' & before & v & v' & after & -> & ->) j1. assert (nn := largest_nonneg _ j ok).
  unfold largest in *. destruct (Nat.leb_spec (S j) kept), (Nat.leb_spec j kept); try lra; try lia.
  apply nth_order; [now apply valid_is_nonneg|]. intros t. rewrite !at_least_app. simpl.
  unfold one_if. destruct (Rle_dec t v'), (Rle_dec t v); lia.
Qed.

Lemma largest_grows before v v' after j : v <= v' -> Forall valid (before ++ v' :: after) ->
  largest kept (before ++ v :: after) j <= largest kept (before ++ v' :: after) j.
Proof.
  intros le ok. unfold largest. destruct (j <=? kept)%nat; [|lra].
  apply nth_order; [now apply valid_is_nonneg|]. intros t. rewrite !at_least_app. simpl.
  unfold one_if. destruct (Rle_dec t v'), (Rle_dec t v); lia || lra.
Qed.

Lemma order_nested x c : Forall valid x -> nested c (bounds_of x).
Proof.
  intros ok. split; simpl.
  - destruct (Nat.ltb_spec 0 k); [|lia]. now rewrite Nat.add_0_r, Nat.sub_0_r.
  - intros l _. split.
    + replace (k + S l)%nat with (S (k + l)) by lia. apply largest_falls; [auto | lia].
    + destruct (Nat.ltb_spec l k), (Nat.ltb_spec (S l) k); try lia; try lra.
      * replace (k - l)%nat with (S (k - S l)) by lia. apply largest_falls; [auto | lia].
      * now apply largest_le_limit.
Qed.

(** The bounds of an order statistic satisfy Definition 3.4 ... *)
Theorem order_one_rank_apart x x' c : replace_one valid x x' -> one_rank_apart c (bounds_of x) (bounds_of x').
Proof.
  intros pair l _. simpl. split.
  - destruct (Nat.ltb_spec l k), (Nat.ltb_spec (S l) k); try lia; try lra.
    + replace (k - l)%nat with (S (k - S l)) by lia.
      apply largest_next; [now apply replace_one_sym | lia].
    + apply largest_le_limit, pair.
  - replace (k + S l)%nat with (S (k + l)) by lia. apply largest_next; [auto | lia].
Qed.

(** ... and are one-directed. *)
Theorem order_one_directed before v v' after c : v <= v' -> Forall valid (before ++ v' :: after) ->
  below c (bounds_of (before ++ v :: after)) (bounds_of (before ++ v' :: after)).
Proof.
  intros le ok l _. simpl. split; [now apply largest_grows|].
  destruct (l <? k)%nat; [now apply largest_grows | lra].
Qed.

(** So an order statistic, released by hazard selection at epsilon, is epsilon-differentially private. *)
Theorem order_statistic_private eps q grid K c :
  exp (- (eps / INR Constants.share_monotonic)) <= q <= 1 ->
  private eps (replace_one valid)
    (fun x => hazard_release Constants.power_monotonic q grid K c (bounds_of x)).
Proof.
  intros ratio x x' pair. assert (back := replace_one_sym _ _ _ pair).
  assert (apart := order_one_rank_apart x x' c pair). assert (apart' := order_one_rank_apart x' x c back).
  destruct pair as (ok & ok' & before & v & v' & after & -> & ->).
  assert (nest := order_nested _ c ok). assert (nest' := order_nested _ c ok').
  destruct (Rle_dec v v') as [grows | falls].
  - apply release_private_monotonic; auto. now apply order_one_directed.
  - apply and_comm, release_private_monotonic; auto. apply order_one_directed; auto. lra.
Qed.

(** And so when a record is added or removed. *)
Lemma largest_added before v after j : Forall valid (before ++ v :: after) -> (1 <= j)%nat ->
  largest kept (before ++ after) j <= largest kept (before ++ v :: after) j /\
  largest kept (before ++ v :: after) (S j) <= largest kept (before ++ after) j.
Proof.
  intros ok' j1. assert (ok : Forall valid (before ++ after)).
  { apply Forall_app in ok' as [left right]. inversion right; subst. now apply Forall_app. }
  assert (nn := largest_nonneg _ j ok). unfold largest in *.
  destruct (Nat.leb_spec (S j) kept), (Nat.leb_spec j kept); split; try lra; try lia;
    apply nth_order; try (now apply valid_is_nonneg); intros t; rewrite !at_least_app; simpl;
    unfold one_if; destruct (Rle_dec t v); lia.
Qed.

Theorem order_statistic_private_n eps q grid K c :
  exp (- (eps / INR Constants.share_monotonic)) <= q <= 1 ->
  private eps (add_or_remove_one valid)
    (fun x => hazard_release Constants.power_monotonic q grid K c (bounds_of x)).
Proof.
  intros ratio. assert (one : forall x x', adds valid x x' ->
    let release := fun x => hazard_release Constants.power_monotonic q grid K c (bounds_of x) in
    within eps (release x) (release x') /\ within eps (release x') (release x)).
  { intros x x' (ok' & before & v & after & -> & ->). assert (near := fun j => largest_added before v after j ok').
    assert (ok : Forall valid (before ++ after)).
    { apply Forall_app in ok' as [left right]. inversion right; subst. now apply Forall_app. }
    apply release_private_monotonic; auto using order_nested.
    - intros l _. simpl. split.
      + destruct (Nat.ltb_spec l k), (Nat.ltb_spec (S l) k); try lia; try lra; [|now apply largest_le_limit].
        apply Rle_trans with (largest kept (before ++ v :: after) (k - l)); [apply near; lia|].
        replace (k - l)%nat with (S (k - S l)) by lia. apply largest_falls; [auto | lia].
      + replace (k + S l)%nat with (S (k + l)) by lia. apply near. lia.
    - intros l _. simpl. split.
      + destruct (Nat.ltb_spec l k), (Nat.ltb_spec (S l) k); try lia; try lra; [|now apply largest_le_limit].
        replace (k - l)%nat with (S (k - S l)) by lia. apply near. lia.
      + replace (k + S l)%nat with (S (k + l)) by lia.
        apply Rle_trans with (largest kept (before ++ after) (k + l)); [|apply near; lia].
        apply largest_falls; [auto | lia].
    - intros l _. simpl. split; [apply near; lia|].
      destruct (Nat.ltb_spec l k); [apply near; lia | lra]. }
  intros x x' [more | less]; [now apply one | now apply and_comm, one].
Qed.

End Order.
