(** How far the tails of the values reach from their middle: the statistic that the first stage of a variance
    releases, and its output bounds, when a record is replaced, added or removed (theory, 6; [far_distances] in
    variance_bounds.py). *)
From Coq Require Import Reals Lra Lia List ZArith ZifyNat.
From DP Require Import Constants Laws HazardRelease OutputBounds MeanLoss OrderStatistics Variance AddRemove TwoSums.
Import ListNotations.
Open Scope R_scope.

#[local] Ltac Zify.zify_post_hook ::= Z.to_euclidean_division_equations.

(** ** Definitions *)

(** The values in ascending order, x_0, ..., x_(n-1), with [a] in front of them and [b] behind them. *)
Definition in_order (a b : R) (x : list R) (i : Z) : R :=
  let n := Z.of_nat (length x) in
  if (i <? 0)%Z then a else if (n <=? i)%Z then b else nth (Z.to_nat (n - 1 - i)) (descending x) 0.

(** The mean of m places from [start] on. *)
Fixpoint window (X : Z -> R) (start : Z) (m : nat) : R :=
  match m with O => 0 | S m => X start + window X (start + 1) m end.
Definition mean_of (X : Z -> R) (start : Z) (m : nat) : R := window X start m / INR m.

(** The middle is what is left without h values at either end, of n >= 1 values; of none it is one place. *)
Definition trimmed (trim n : nat) : nat := Nat.min trim ((n - 1) / 2).
Definition width (n h : nat) : nat := Nat.max 1 (n - 2 * h).

(** Public numbers: how many values are trimmed at most, the least rank k, and the weights; and how the program
    rounds the mean, the distance and its multiple, to the nearest float. *)
Record rule := Rule { trim : nat; least : nat; weight_of : nat -> R; fl : R -> R }.

(** How far the i-th value from either end is from the mean of the middle, with all places moved inwards by [s],
    and the mean outwards: max(x_(n-i-s) - c+, c- - x_(i-1+s)), where c+ and c- are the means of the middle moved
    up and down by [s]. *)
Definition reach (fl : R -> R) (X : Z -> R) (n h i : nat) (s : Z) : R :=
  let mean start := fl (mean_of X start (width n h)) in
  Rmax (fl (X (Z.of_nat n - Z.of_nat i - s)%Z - mean (Z.of_nat h + s)%Z))
       (fl (mean (Z.of_nat h - s)%Z - X (Z.of_nat i - 1 + s)%Z)).

(** A tail of n t / 10 values, but of k at least. *)
Definition tail_rank (k n t : nat) : nat := Nat.max k (n * t / 10).

Definition reach_of (p : rule) (a b : R) (x : list R) (t : nat) (s : Z) : R :=
  let n := length x in reach (fl p) (in_order a b x) n (trimmed (trim p) n) (tail_rank (least p) n t) s.

(** Without public ends the places beyond the values are infinite: a tail of more values than there are reaches
    nowhere ... *)
Definition tail_known (ends : option (R * R)) (n i : nat) (s : Z) : bool :=
  match ends with Some _ => true | None => (Z.of_nat i + s <=? Z.of_nat n)%Z end.

(** ... and a middle that is moved beyond the values has an infinite mean. *)
Definition middle_known (p : rule) (ends : option (R * R)) (n : nat) (s : Z) : bool :=
  match ends with Some _ => true | None => (Z.abs s <=? Z.of_nat (trimmed (trim p) n))%Z end.

(** So from it a value is as far as can be if places are moved outwards, s < 0, and not at all if inwards. *)
Definition tail_reach (limit : R) (p : rule) (ends : option (R * R)) (x : list R) (s : Z) (t : nat) : R :=
  let n := length x in
  let (a, b) := match ends with Some ab => ab | None => (0, 0) end in
  if tail_known ends n (tail_rank (least p) n t) s then
    if middle_known p ends n s then fl p (weight_of p t * reach_of p a b x t s)
    else if (s <? 0)%Z then limit else 0
  else 0.

(** The greatest of some numbers and 0. *)
Fixpoint most_of (a : list R) : R := match a with [] => 0 | v :: a => Rmax v (most_of a) end.

(** Over the fractions t / 10 of the values, t = 0, ..., 5; at most the public limit. *)
Definition greatest_reach (limit : R) (p : rule) (ends : option (R * R)) (x : list R) (s : Z) : R :=
  Rmin limit (most_of (map (tail_reach limit p ends x s) (seq 0 6))).

(** L^l and U^l, which is the public limit from l = k on. *)
Definition reach_bounds (limit : R) (p : rule) (ends : option (R * R)) (x : list R) : bounds :=
  {| lower l := greatest_reach limit p ends x (Z.of_nat l);
     upper l := if (l <? least p)%nat then greatest_reach limit p ends x (- Z.of_nat l) else limit |}.

Definition valid_rule (p : rule) : Prop :=
  (1 <= least p)%nat /\ (forall t, 0 <= weight_of p t) /\ forall a b, a <= b -> fl p a <= fl p b.
Definition valid_ends (ends : option (R * R)) : Prop := match ends with Some (a, b) => a <= b | None => True end.

(** The release by hazard selection: the number of the output. *)
Definition private_reach (q : R) (public : settings) (limit : R) (p : rule) (ends : option (R * R)) (x : list R) :
    law nat :=
  hazard_release power_general q (grid public) (last public) (capacity public) (reach_bounds limit p ends x).

(** ** Places in order *)

Definition between (a b : R) (x : list R) : Prop := Forall (fun v => a <= v <= b) x.

Lemma nth_at_least_in t x : sorted x -> forall j, (j < length x)%nat -> t <= nth j x 0 <-> (j < at_least t x)%nat.
Proof.
  intros order. induction order as [|v x order IH small]; intros j lt; [simpl in lt; lia|].
  simpl at_least. unfold one_if. destruct (Rle_dec t v) as [le | gt].
  - destruct j; simpl; [split; intros; lra || lia|]. rewrite IH by (simpl in lt; lia). lia.
  - assert (none : at_least t x = 0%nat).
    { clear - small gt. induction small as [|u x le small IH]; simpl; auto.
      unfold one_if. destruct (Rle_dec t u); [lra | auto]. }
    rewrite none. split; [|lia]. intros le. exfalso. destruct j; simpl in le; [lra|].
    apply IH in le; [lia | simpl in lt; lia].
Qed.

Lemma in_order_between a b x i : a <= b -> between a b x -> a <= in_order a b x i <= b.
Proof.
  intros ab ok. unfold in_order. destruct (Z.ltb_spec i 0), (Z.leb_spec (Z.of_nat (length x)) i); try lra.
  assert (all : Forall (fun v => a <= v <= b) (descending x)).
  { apply Permutation.Permutation_Forall with x; auto. apply descending_perm. }
  apply (Forall_nth (fun v => a <= v <= b) (descending x)); auto.
  rewrite <- (Permutation.Permutation_length (descending_perm x)). lia.
Qed.

Lemma in_order_le a b x x' i i' : a <= b -> between a b x -> between a b x' ->
  let n := Z.of_nat (length x) in let n' := Z.of_nat (length x') in
  ((n <= i -> n' <= i') /\ (i' < 0 -> i < 0))%Z ->
  (forall t, n - 1 - i < Z.of_nat (at_least t x) -> n' - 1 - i' < Z.of_nat (at_least t x'))%Z ->
  in_order a b x i <= in_order a b x' i'.
Proof.
  intros ab ok ok' n n' [high low] more.
  assert (r := in_order_between a b x i ab ok). assert (r' := in_order_between a b x' i' ab ok').
  unfold in_order in r, r' |- *. cbv zeta in r, r' |- *. fold n in r |- *. fold n' in r' |- *.
  destruct (Z.ltb_spec i 0); [lra|].
  destruct (Z.ltb_spec i' 0); [lia|]. destruct (Z.leb_spec n' i'); [lra|]. destruct (Z.leb_spec n i); [lia|].
  assert (size := Permutation.Permutation_length (descending_perm x)).
  assert (size' := Permutation.Permutation_length (descending_perm x')).
  apply nth_at_least_in; [apply descending_sorted | lia|].
  rewrite <- (at_least_perm _ _ _ (descending_perm x')).
  set (t := nth _ _ _). assert (reached : (Z.to_nat (n - 1 - i) < at_least t x)%nat).
  { rewrite (at_least_perm _ _ _ (descending_perm x)). apply nth_at_least_in; [apply descending_sorted | lia|].
    unfold t. lra. }
  specialize (more t). lia.
Qed.

Lemma in_order_grows a b x : a <= b -> between a b x ->
  forall i j, (i <= j)%Z -> in_order a b x i <= in_order a b x j.
Proof. intros ab ok i j le. apply in_order_le; auto; [lia|]. intros t. lia. Qed.

Lemma in_order_same a b a' b' x i : (0 <= i < Z.of_nat (length x))%Z -> in_order a b x i = in_order a' b' x i.
Proof.
  intros inside. unfold in_order. destruct (Z.ltb_spec i 0), (Z.leb_spec (Z.of_nat (length x)) i); try lia.
  reflexivity.
Qed.

(** ** Means of windows *)

Lemma window_le X X' start start' m :
  (forall d, (0 <= d < Z.of_nat m)%Z -> X (start + d)%Z <= X' (start' + d)%Z) ->
  window X start m <= window X' start' m.
Proof.
  revert start start'. induction m as [|m IH]; intros start start' le; simpl; [lra|].
  assert (first := le 0%Z ltac:(lia)). rewrite !Z.add_0_r in first. apply Rplus_le_compat; auto.
  apply IH. intros d inside. specialize (le (1 + d)%Z ltac:(lia)). now rewrite !Z.add_assoc in le.
Qed.

Lemma mean_le X X' start start' m :
  (forall d, (0 <= d < Z.of_nat m)%Z -> X (start + d)%Z <= X' (start' + d)%Z) ->
  mean_of X start m <= mean_of X' start' m.
Proof.
  intros le. unfold mean_of. destruct m as [|m]; [simpl; lra|].
  apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, lt_0_INR; lia | now apply window_le].
Qed.

Lemma mean_same X X' start m :
  (forall d, (0 <= d < Z.of_nat m)%Z -> X (start + d)%Z = X' (start + d)%Z) -> mean_of X start m = mean_of X' start m.
Proof. intros same. apply Rle_antisym; apply mean_le; intros d inside; rewrite same by auto; lra. Qed.

Lemma window_last X start m : window X start (S m) = window X start m + X (start + Z.of_nat m)%Z.
Proof.
  revert start. induction m as [|m IH]; intros start; [simpl; rewrite Z.add_0_r; ring|].
  change (window X start (S (S m))) with (X start + window X (start + 1) (S m)). rewrite IH.
  replace (start + 1 + Z.of_nat m)%Z with (start + Z.of_nat (S m))%Z by lia. simpl. ring.
Qed.

Section Means.

Variable X : Z -> R.
Hypothesis grows : forall i j, (i <= j)%Z -> X i <= X j.

Lemma window_above start m v : (forall i, (start <= i)%Z -> v <= X i) -> INR m * v <= window X start m.
Proof.
  revert start. induction m as [|m IH]; intros start le; [simpl; lra|].
  rewrite S_INR. simpl window. specialize (IH (start + 1)%Z). assert (first := le start ltac:(lia)).
  assert (rest : INR m * v <= window X (start + 1) m) by (apply IH; intros; apply le; lia). lra.
Qed.

Lemma window_below start m v : (forall i, (i < start + Z.of_nat m)%Z -> X i <= v) -> window X start m <= INR m * v.
Proof.
  revert start. induction m as [|m IH]; intros start le; [simpl; lra|].
  rewrite S_INR. simpl window. assert (first := le start ltac:(lia)).
  assert (rest : window X (start + 1) m <= INR m * v) by (apply IH; intros; apply le; lia). lra.
Qed.

(** Without its smallest value the mean is larger ... *)
Lemma mean_drop_first start m : (1 <= m)%nat -> mean_of X start (S m) <= mean_of X (start + 1) m.
Proof.
  intros m1. assert (M : 1 <= INR m) by now apply (le_INR 1). unfold mean_of. rewrite S_INR. simpl window.
  assert (above : INR m * X start <= window X (start + 1) m) by (apply window_above; intros; apply grows; lia).
  apply Rmult_le_reg_r with (INR m * (INR m + 1)); [apply Rmult_lt_0_compat; lra|].
  field_simplify; [|lra..]. lra.
Qed.

(** ... and without its largest one it is smaller. *)
Lemma mean_drop_last start m : (1 <= m)%nat -> mean_of X start m <= mean_of X start (S m).
Proof.
  intros m1. assert (M : 1 <= INR m) by now apply (le_INR 1). unfold mean_of. rewrite window_last, S_INR.
  assert (below : window X start m <= INR m * X (start + Z.of_nat m)%Z) by (apply window_below; intros; apply grows;
  lia).
  apply Rmult_le_reg_r with (INR m * (INR m + 1)); [apply Rmult_lt_0_compat; lra|].
  field_simplify; [|lra..]. lra.
Qed.

End Means.

(** ** One step undoes the change of one record *)

Lemma width_pos n h : (1 <= width n h)%nat.
Proof. unfold width. lia. Qed.

Section Rounded.

Variable fl : R -> R.
Hypothesis mono : forall a b, a <= b -> fl a <= fl b.

Lemma reach_le X X' n n' h h' i i' s s' :
  X (Z.of_nat n - Z.of_nat i - s)%Z <= X' (Z.of_nat n' - Z.of_nat i' - s')%Z ->
  X' (Z.of_nat i' - 1 + s')%Z <= X (Z.of_nat i - 1 + s)%Z ->
  mean_of X' (Z.of_nat h' + s') (width n' h') <= mean_of X (Z.of_nat h + s) (width n h) ->
  mean_of X (Z.of_nat h - s) (width n h) <= mean_of X' (Z.of_nat h' - s') (width n' h') ->
  reach fl X n h i s <= reach fl X' n' h' i' s'.
Proof.
  intros top bottom up down. apply mono in up, down. unfold reach.
  apply Rmax_lub; [apply Rle_trans with (2 := Rmax_l _ _) | apply Rle_trans with (2 := Rmax_r _ _)]; apply mono; lra.
Qed.

(** With the same number of values each place moves by at most one place. *)
Lemma reach_next X X' n h i s : (forall j, X j <= X' (j + 1)%Z) -> (forall j, X' j <= X (j + 1)%Z) ->
  reach fl X n h i (s + 1) <= reach fl X' n h i s.
Proof.
  intros near near'. apply reach_le.
  - apply Rle_trans with (1 := near _). right. f_equal. lia.
  - apply Rle_trans with (1 := near' _). right. f_equal. lia.
  - apply mean_le. intros d _. apply Rle_trans with (1 := near' _). right. f_equal. lia.
  - apply mean_le. intros d _. apply Rle_trans with (1 := near _). right. f_equal. lia.
Qed.

Section Added.

(** [X'] has one value more, so that its places are not above those of [X], and the next ones not below them. *)
Variables (X X' : Z -> R) (n : nat).
Hypothesis grows : forall i j, (i <= j)%Z -> X i <= X j.
Hypothesis grows' : forall i j, (i <= j)%Z -> X' i <= X' j.
Hypothesis before : forall i, X' i <= X i.
Hypothesis after : forall i, X i <= X' (i + 1)%Z.

Lemma before_le i j : (i <= j)%Z -> X' i <= X j.
Proof. intros le. apply Rle_trans with (X i); auto. Qed.

Lemma after_le i j : (i < j)%Z -> X i <= X' j.
Proof. intros lt. apply Rle_trans with (X' (i + 1)%Z); auto. apply grows'. lia. Qed.

Lemma middle_cases trim : let h := trimmed trim n in let h' := trimmed trim (S n) in
  (h' = h /\ (width (S n) h' = width n h \/ width (S n) h' = S (width n h))) \/
  (h' = S h /\ width n h = S (width (S n) h')).
Proof. unfold trimmed, width. cbv zeta. lia. Qed.

Lemma means_added trim s : let h := trimmed trim n in let h' := trimmed trim (S n) in
  mean_of X (Z.of_nat h + s) (width n h) <= mean_of X' (Z.of_nat h' + s + 1) (width (S n) h') /\
  mean_of X' (Z.of_nat h' + s) (width (S n) h') <= mean_of X (Z.of_nat h + s + 1) (width n h).
Proof.
  intros h h'. assert (cases := middle_cases trim). cbv zeta in cases. fold h h' in cases.
  assert (m1 := width_pos n h). assert (m1' := width_pos (S n) h'). clearbody h h'.
  destruct cases as [[-> [-> | ->]] | [-> same]].
  - split; apply mean_le; intros d _; [apply after_le | apply before_le]; lia.
  - split.
    + apply Rle_trans with (2 := mean_drop_last X' grows' _ _ m1). apply mean_le. intros d _. apply after_le. lia.
    + apply Rle_trans with (1 := mean_drop_first X' grows' _ _ m1). apply mean_le. intros d _. apply before_le. lia.
  - rewrite same. split.
    + apply Rle_trans with (mean_of X' (Z.of_nat h + s + 1) (S (width (S n) (S h)))).
      * apply mean_le. intros d _. apply after_le. lia.
      * replace (Z.of_nat (S h) + s + 1)%Z with (Z.of_nat h + s + 1 + 1)%Z by lia. now apply mean_drop_first.
    + apply Rle_trans with (mean_of X (Z.of_nat h + s + 1) (width (S n) (S h))).
      * apply mean_le. intros d _. apply before_le. lia.
      * now apply mean_drop_last.
Qed.

Lemma reach_added trim k t s : (t <= 10)%nat ->
  let h := trimmed trim n in let h' := trimmed trim (S n) in
  let i := tail_rank k n t in let i' := tail_rank k (S n) t in
  reach fl X n h i (s + 1) <= reach fl X' (S n) h' i' s /\ reach fl X' (S n) h' i' (s + 1) <= reach fl X n h i s.
Proof.
  intros t10 h h' i i'. assert (ranks : (i' = i \/ i' = S i)%nat) by (unfold i, i', tail_rank; nia).
  assert (means := means_added trim). cbv zeta in means. fold h h' in means. clearbody i i' h h'.
  split; apply reach_le.
  - apply after_le. lia.
  - apply before_le. lia.
  - destruct (means s) as [_ le]. now rewrite Z.add_assoc.
  - destruct (means (- s - 1)%Z) as [le _].
    replace (Z.of_nat h - (s + 1))%Z with (Z.of_nat h + (- s - 1))%Z by lia.
    now replace (Z.of_nat h' - s)%Z with (Z.of_nat h' + (- s - 1) + 1)%Z by lia.
  - apply before_le. lia.
  - apply after_le. lia.
  - destruct (means s) as [le _]. now rewrite Z.add_assoc.
  - destruct (means (- s - 1)%Z) as [_ le].
    replace (Z.of_nat h' - (s + 1))%Z with (Z.of_nat h' + (- s - 1))%Z by lia.
    now replace (Z.of_nat h - s)%Z with (Z.of_nat h + (- s - 1) + 1)%Z by lia.
Qed.

End Added.

End Rounded.

(** Two data sets of which one step undoes the difference. *)
Definition close (p : rule) (a b : R) (x x' : list R) : Prop :=
  forall t s, (t <= 10)%nat -> reach_of p a b x t (s + 1) <= reach_of p a b x' t s.

Section Close.

Variable p : rule.
Hypothesis valid : valid_rule p.
Let mono := proj2 (proj2 valid).

Lemma close_replaced a b y v v' z : a <= b -> between a b (y ++ v :: z) -> between a b (y ++ v' :: z) ->
  close p a b (y ++ v :: z) (y ++ v' :: z).
Proof.
  intros ab ok ok' t s _. unfold reach_of.
  assert (size : length (y ++ v' :: z) = length (y ++ v :: z)) by (rewrite !app_length; reflexivity).
  rewrite size. apply (reach_next _ mono); intros j; apply in_order_le; auto; rewrite ?size; try lia;
    intros u; rewrite !at_least_app; cbn [at_least]; unfold one_if; destruct (Rle_dec u v), (Rle_dec u v'); lia.
Qed.

Lemma close_self a b x : a <= b -> between a b x -> close p a b x x.
Proof.
  intros ab ok t s _. unfold reach_of. apply (reach_next _ mono); intros j; apply in_order_grows; auto; lia.
Qed.

Lemma close_added a b y v z : a <= b -> between a b (y ++ v :: z) ->
  close p a b (y ++ z) (y ++ v :: z) /\ close p a b (y ++ v :: z) (y ++ z).
Proof.
  intros ab ok'. assert (ok : between a b (y ++ z)).
  { apply Forall_app in ok' as [left right]. inversion right; subst. now apply Forall_app. }
  assert (both : forall t s, (t <= 10)%nat -> reach_of p a b (y ++ z) t (s + 1) <= reach_of p a b (y ++ v :: z) t s /\
    reach_of p a b (y ++ v :: z) t (s + 1) <= reach_of p a b (y ++ z) t s).
  { intros t s t10. unfold reach_of.
    assert (size : length (y ++ v :: z) = S (length (y ++ z))) by (rewrite !app_length; simpl; lia).
    rewrite size. apply reach_added; auto; try now apply in_order_grows.
    - intros i. apply in_order_le; auto; rewrite ?size; try lia.
      intros u. rewrite !at_least_app. cbn [at_least]. unfold one_if. destruct (Rle_dec u v); lia.
    - intros i. apply in_order_le; auto; rewrite ?size; try lia.
      intros u. rewrite !at_least_app. cbn [at_least]. unfold one_if. destruct (Rle_dec u v); lia. }
  split; intros t s t10; now apply both.
Qed.

End Close.

(** ** Without public ends no place beyond the values is looked at *)

Lemma reach_same p a b a' b' x t s : (1 <= least p)%nat ->
  (Z.abs s <= Z.of_nat (trimmed (trim p) (length x)))%Z ->
  (0 < Z.of_nat (least p) + s)%Z -> (Z.of_nat (tail_rank (least p) (length x) t) + s <= Z.of_nat (length x))%Z ->
  reach_of p a b x t s = reach_of p a' b' x t s.
Proof.
  intros k1 middle up known. unfold reach_of, reach.
  set (n := length x) in *. set (i := tail_rank (least p) n t) in *.
  assert (ik : (least p <= i)%nat) by (unfold i, tail_rank; lia).
  assert (m : (width n (trimmed (trim p) n) + 2 * trimmed (trim p) n = n)%nat) by (unfold width, trimmed; lia).
  set (h := trimmed (trim p) n) in *. set (w := width n h) in *. clearbody w h i.
  assert (same : forall j, (0 <= j < Z.of_nat n)%Z -> in_order a b x j = in_order a' b' x j)
    by (intros j; apply in_order_same).
  rewrite !(mean_same (in_order a b x) (in_order a' b' x)), !same; auto; try lia; intros d inside; apply same; lia.
Qed.

(** Any finitely many values lie between two numbers. *)
Lemma some_ends x : exists a b, a <= b /\ between a b x.
Proof.
  induction x as [|v x (a & b & ab & ok)]; [exists 0, 0; split; [lra | constructor]|].
  exists (Rmin a v), (Rmax b v). assert (l := Rmin_l a v). assert (l' := Rmin_r a v).
  assert (g := Rmax_l b v). assert (g' := Rmax_r b v). split; [lra|]. constructor; [lra|].
  revert ok. apply Forall_impl. intros u. lra.
Qed.

(** ** Output bounds *)

Lemma most_of_le {A} limit (f g : A -> R) l : (forall a, In a l -> f a <= g a \/ f a <= 0 \/ limit <= g a) ->
  Rmin limit (most_of (map f l)) <= Rmin limit (most_of (map g l)).
Proof.
  intros le. assert (nonneg : forall l, 0 <= most_of (map g l)).
  { clear. induction l as [|a l IH]; simpl; [lra|]. apply Rle_trans with (1 := IH), Rmax_r. }
  assert (either : most_of (map f l) <= most_of (map g l) \/ limit <= most_of (map g l)).
  { induction l as [|a l IH]; simpl; [left; lra|]. specialize (nonneg l).
    assert (m := Rmax_r (g a) (most_of (map g l))). assert (m' := Rmax_l (g a) (most_of (map g l))).
    destruct (IH ltac:(intros; apply le; now right)), (le a (or_introl eq_refl)) as [? | [? | ?]];
      try (right; lra); left; apply Rmax_lub; lra. }
  destruct either as [less | far]; [now apply Rle_min_compat_l | rewrite (Rmin_left _ _ far); apply Rmin_l].
Qed.

(** The sizes of neighbours differ by at most one. *)
Definition sizes_near (x x' : list R) : Prop := (length x <= S (length x') /\ length x' <= S (length x))%nat.

Lemma trimmed_near j n n' : (n <= S n' -> trimmed j n <= S (trimmed j n'))%nat.
Proof. unfold trimmed. lia. Qed.

Section Bounds.

Variables (limit : R) (p : rule) (ends : option (R * R)).
Hypothesis valid : valid_rule p.

Let bounds_of := reach_bounds limit p ends.

(** What holds for these ends, or for some that no value exceeds, if there are none. *)
Definition close_at (x x' : list R) : Prop :=
  match ends with Some (a, b) => close p a b x x' | None => exists a b, close p a b x x' end.

Lemma greatest_reach_falls x x' s : close_at x x' -> sizes_near x x' -> (0 < Z.of_nat (least p) + s)%Z ->
  greatest_reach limit p ends x (s + 1) <= greatest_reach limit p ends x' s.
Proof.
  intros near [size size'] up. destruct valid as (k1 & g0 & mono). apply most_of_le. intros t into.
  apply in_seq in into.
  assert (scaled : forall d d', d <= d' -> fl p (weight_of p t * d) <= fl p (weight_of p t * d'))
    by (intros d d' le; apply mono, Rmult_le_compat_l; auto).
  unfold close_at, tail_reach, tail_known, middle_known in *. destruct ends as [[a b]|].
  - left. apply scaled, near. lia.
  - destruct near as (a & b & near). assert (h := trimmed_near (trim p) _ _ size).
    assert (h' := trimmed_near (trim p) _ _ size').
    destruct (Z.leb_spec (Z.of_nat (tail_rank (least p) (length x) t) + (s + 1)) (Z.of_nat (length x)));
      [|right; lra].
    assert (known : (Z.of_nat (tail_rank (least p) (length x') t) + s <= Z.of_nat (length x'))%Z)
      by (unfold tail_rank in *; nia).
    destruct (Z.leb_spec (Z.of_nat (tail_rank (least p) (length x') t) + s) (Z.of_nat (length x'))); [|lia].
    destruct (Z.leb_spec (Z.abs s) (Z.of_nat (trimmed (trim p) (length x')))),
      (Z.leb_spec (Z.abs (s + 1)) (Z.of_nat (trimmed (trim p) (length x)))),
      (Z.ltb_spec s 0), (Z.ltb_spec (s + 1) 0); try lia; try lra.
    all: left; rewrite (reach_same p 0 0 a b x), (reach_same p 0 0 a b x') by (auto; lia); apply scaled, near; lia.
Qed.

Lemma reach_one_apart x x' c : close_at x x' -> close_at x' x -> sizes_near x x' ->
  one_rank_apart c (bounds_of x) (bounds_of x').
Proof.
  intros near near' sizes l _. unfold bounds_of, reach_bounds. cbn [upper lower]. split.
  - destruct (Nat.ltb_spec (S l) (least p)), (Nat.ltb_spec l (least p)); try lia; try lra; [|apply Rmin_l].
    replace (- Z.of_nat l)%Z with (- Z.of_nat (S l) + 1)%Z by lia. apply greatest_reach_falls; auto. lia.
  - replace (Z.of_nat (S l)) with (Z.of_nat l + 1)%Z by lia.
    apply greatest_reach_falls; auto; [now destruct sizes | destruct valid; lia].
Qed.

Lemma reach_nested x c : close_at x x -> nested c (bounds_of x).
Proof.
  intros near. assert (apart := reach_one_apart x x (S c) near near ltac:(unfold sizes_near; lia)). split.
  - unfold bounds_of, reach_bounds. cbn [upper lower]. destruct valid as [k1 _].
    destruct (Nat.ltb_spec 0 (least p)); [reflexivity | lia].
  - intros l lt. destruct (apart l ltac:(lia)). auto.
Qed.

End Bounds.

(** ** Neighbours *)

Section Neighbours.

Variables (limit : R) (ends : option (R * R)).
Hypothesis ordered : valid_ends ends.

Lemma close_at_of p x x' : Forall (valid_value ends) (x ++ x') ->
  (forall a b, a <= b -> between a b (x ++ x') -> close p a b x x') -> close_at p ends x x'.
Proof.
  unfold valid_value, close_at, valid_ends in *. destruct ends as [[a b]|]; intros ok near; [now apply near|].
  destruct (some_ends (x ++ x')) as (a & b & ab & inside). exists a, b. now apply near.
Qed.

Lemma reach_bounds_nested p x c : valid_rule p -> Forall (valid_value ends) x ->
  nested c (reach_bounds limit p ends x).
Proof.
  intros valid ok. apply reach_nested; auto. apply close_at_of; [now apply Forall_app|]. intros a b ab inside.
  apply close_self; auto. now apply Forall_app in inside.
Qed.

(** The bounds satisfy Definition 3.4 when a record is replaced (they do not move in one direction) ... *)
Theorem reach_one_rank_apart p x x' c : valid_rule p -> replace_one (valid_value ends) x x' ->
  one_rank_apart c (reach_bounds limit p ends x) (reach_bounds limit p ends x').
Proof.
  intros valid (ok & ok' & y & v & v' & z & -> & ->).
  apply reach_one_apart; auto; try (apply close_at_of; [now apply Forall_app|]; intros a b ab inside;
    apply Forall_app in inside as [one two]; now apply close_replaced).
  unfold sizes_near. rewrite !app_length. simpl. lia.
Qed.

(** ... and when one is added or removed, from no records on. *)
Theorem reach_private_n_one_rank_apart p x x' c : valid_rule p -> add_or_remove_one (valid_value ends) x x' ->
  one_rank_apart c (reach_bounds limit p ends x) (reach_bounds limit p ends x').
Proof.
  intros valid pair.
  assert (both : forall y v z, Forall (valid_value ends) (y ++ v :: z) ->
    close_at p ends (y ++ z) (y ++ v :: z) /\ close_at p ends (y ++ v :: z) (y ++ z)).
  { intros y v z ok'. assert (ok : Forall (valid_value ends) (y ++ z)).
    { apply Forall_app in ok' as [left right]. inversion right; subst. now apply Forall_app. }
    split; apply close_at_of; try (now apply Forall_app); intros a b ab inside;
      apply Forall_app in inside as [one two]; now apply close_added. }
  destruct pair as [(ok & y & v & z & -> & ->) | (ok & y & v & z & -> & ->)]; destruct (both y v z ok);
    apply reach_one_apart; auto; unfold sizes_near; rewrite !app_length; simpl; lia.
Qed.

(** So the statistic, released by hazard selection with power 5, is private when a record is replaced ... *)
Theorem private_reach_is_private eps q public p :
  exp (- (eps / INR share_general)) <= q <= 1 -> valid_rule p ->
  private eps (replace_one (valid_value ends)) (private_reach q public limit p ends).
Proof.
  intros ratio valid.
  assert (way : forall x x', replace_one (valid_value ends) x x' ->
    within eps (private_reach q public limit p ends x) (private_reach q public limit p ends x')).
  { intros x x' pair. assert (back := replace_one_sym _ _ _ pair). apply release_private_general; auto.
    - apply reach_bounds_nested; auto. apply pair.
    - apply reach_bounds_nested; auto. apply pair.
    - now apply reach_one_rank_apart.
    - now apply reach_one_rank_apart. }
  intros x x' pair. split; apply way; auto. now apply replace_one_sym.
Qed.

(** ... and when one is added or removed. *)
Theorem private_reach_private_n_is_private eps q public p :
  exp (- (eps / INR share_general)) <= q <= 1 -> valid_rule p ->
  private eps (add_or_remove_one (valid_value ends)) (private_reach q public limit p ends).
Proof.
  intros ratio valid.
  assert (first : forall x x', add_or_remove_one (valid_value ends) x x' -> Forall (valid_value ends) x).
  { intros x x' [(ok' & y & v & z & -> & ->) | (ok & _)]; auto.
    apply Forall_app in ok' as [left right]. inversion right; subst. now apply Forall_app. }
  assert (way : forall x x', add_or_remove_one (valid_value ends) x x' ->
    within eps (private_reach q public limit p ends x) (private_reach q public limit p ends x')).
  { intros x x' pair. assert (back := add_or_remove_sym _ _ _ pair). apply release_private_general; auto.
    - apply reach_bounds_nested; auto. now apply first with x'.
    - apply reach_bounds_nested; auto. now apply first with x.
    - now apply reach_private_n_one_rank_apart.
    - now apply reach_private_n_one_rank_apart. }
  intros x x' pair. split; apply way; auto. now apply add_or_remove_sym.
Qed.

End Neighbours.
