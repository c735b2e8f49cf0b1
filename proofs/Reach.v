(** How far the tails of the values reach from their middle: the statistic that the first stage of a variance
    releases, and its output bounds, when a record is replaced, added or removed. *)
From Coq Require Import Reals Lra Lia List ZArith ZifyNat.
From DP Require Import Constants Laws HazardRelease OutputBounds MeanLoss OrderStatistics Variance AddRemove Adaptive
  ClippedSquares Counted TwoSums.
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

(** How far the i-th value from either end is from the mean of the middle, with all places moved inwards by [s],
    and the mean outwards: max(x_(n-i-s) - c+, c- - x_(i-1+s)), where c+ and c- are the means of the middle moved
    up and down by [s]. *)
Definition reach (X : Z -> R) (n h i : nat) (s : Z) : R :=
  let mean start := mean_of X start (width n h) in
  Rmax (X (Z.of_nat n - Z.of_nat i - s)%Z - mean (Z.of_nat h + s)%Z)
       (mean (Z.of_nat h - s)%Z - X (Z.of_nat i - 1 + s)%Z).

(** Public numbers: how many values are trimmed at most, the least rank k, and the weights. *)
Record rule := Rule { trim : nat; least : nat; weight_of : nat -> R }.

Definition tail_rank (k n t : nat) : nat := Nat.max k (n * t / 10).

Definition reach_of (p : rule) (a b : R) (x : list R) (t : nat) (s : Z) : R :=
  let n := length x in reach (in_order a b x) n (trimmed (trim p) n) (tail_rank (least p) n t) s.

(** The greatest of some numbers and 0. *)
Fixpoint most_of (a : list R) : R := match a with [] => 0 | v :: a => Rmax v (most_of a) end.

(** Over the fractions t / 10 of the values, t = 0, ..., 5. Without public ends a tail of more values than there are
    reaches nowhere. *)
Definition is_known (ends : option (R * R)) (n i : nat) (s : Z) : bool :=
  match ends with Some _ => true | None => (Z.of_nat i + s <=? Z.of_nat n)%Z end.
Definition greatest_reach (p : rule) (ends : option (R * R)) (x : list R) (s : Z) : R :=
  let (a, b) := match ends with Some ab => ab | None => (0, 0) end in
  most_of (map (fun t => if is_known ends (length x) (tail_rank (least p) (length x) t) s
                         then weight_of p t * reach_of p a b x t s else 0) (seq 0 6)).

(** Without public ends a middle that is moved beyond the values has an infinite mean. *)
Definition middle_known (p : rule) (ends : option (R * R)) (n l : nat) : bool :=
  match ends with Some _ => true | None => (l <=? trimmed (trim p) n)%nat end.

(** L^l and U^l, which is the public limit from l = k on; each rounded once. *)
Definition reach_bounds (round : R -> R) (limit : R) (p : rule) (ends : option (R * R)) (x : list R) : bounds :=
  {| lower l := round (if middle_known p ends (length x) l then greatest_reach p ends x (Z.of_nat l) else 0);
     upper l := if ((l <? least p)%nat && middle_known p ends (length x) l)%bool
                then round (greatest_reach p ends x (- Z.of_nat l)) else limit |}.

Definition valid_rule (p : rule) : Prop := (1 <= least p)%nat /\ forall t, 0 <= weight_of p t.
Definition valid_ends (ends : option (R * R)) : Prop := match ends with Some (a, b) => a <= b | None => True end.

(** The release by hazard selection: the number of the output. *)
Definition private_reach (q : R) (public : settings) (round : R -> R) (limit : R) (p : rule) (ends : option (R * R))
    (x : list R) : law nat :=
  hazard_release power_general q (grid public) (last public) (capacity public) (reach_bounds round limit p ends x).

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

Lemma reach_le X X' n n' h h' i i' s s' :
  X (Z.of_nat n - Z.of_nat i - s)%Z <= X' (Z.of_nat n' - Z.of_nat i' - s')%Z ->
  X' (Z.of_nat i' - 1 + s')%Z <= X (Z.of_nat i - 1 + s)%Z ->
  mean_of X' (Z.of_nat h' + s') (width n' h') <= mean_of X (Z.of_nat h + s) (width n h) ->
  mean_of X (Z.of_nat h - s) (width n h) <= mean_of X' (Z.of_nat h' - s') (width n' h') ->
  reach X n h i s <= reach X' n' h' i' s'.
Proof.
  intros top bottom up down. unfold reach.
  apply Rmax_lub; [apply Rle_trans with (2 := Rmax_l _ _) | apply Rle_trans with (2 := Rmax_r _ _)]; lra.
Qed.

(** With the same number of values each place moves by at most one place. *)
Lemma reach_next X X' n h i s : (forall j, X j <= X' (j + 1)%Z) -> (forall j, X' j <= X (j + 1)%Z) ->
  reach X n h i (s + 1) <= reach X' n h i s.
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
  reach X n h i (s + 1) <= reach X' (S n) h' i' s /\ reach X' (S n) h' i' (s + 1) <= reach X n h i s.
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

(** Two data sets of which one step undoes the difference. *)
Definition close (p : rule) (a b : R) (x x' : list R) : Prop :=
  forall t s, (t <= 10)%nat -> reach_of p a b x t (s + 1) <= reach_of p a b x' t s.

Lemma close_replaced p a b y v v' z : a <= b -> between a b (y ++ v :: z) -> between a b (y ++ v' :: z) ->
  close p a b (y ++ v :: z) (y ++ v' :: z).
Proof.
  intros ab ok ok' t s _. unfold reach_of.
  assert (size : length (y ++ v' :: z) = length (y ++ v :: z)) by (rewrite !app_length; reflexivity).
  rewrite size. apply reach_next; intros j; apply in_order_le; auto; rewrite ?size; try lia;
    intros u; rewrite !at_least_app; cbn [at_least]; unfold one_if; destruct (Rle_dec u v), (Rle_dec u v'); lia.
Qed.

Lemma close_self p a b x : a <= b -> between a b x -> close p a b x x.
Proof.
  intros ab ok t s _. unfold reach_of. apply reach_next; intros j; apply in_order_grows; auto; lia.
Qed.

Lemma close_added p a b y v z : a <= b -> between a b (y ++ v :: z) ->
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

Lemma most_of_le {A} (f g : A -> R) l : (forall a, In a l -> f a <= g a) -> most_of (map f l) <= most_of (map g l).
Proof.
  induction l as [|a l IH]; simpl; intros le; [lra|]. assert (first := le a (or_introl eq_refl)).
  assert (rest : most_of (map f l) <= most_of (map g l)) by (apply IH; auto).
  apply Rmax_lub; [apply Rle_trans with (2 := Rmax_l _ _) | apply Rle_trans with (2 := Rmax_r _ _)]; lra.
Qed.

Lemma most_of_zero {A} (f g : A -> R) l : (forall a, In a l -> f a <= g a \/ f a <= 0) ->
  most_of (map f l) <= most_of (map g l).
Proof.
  assert (nonneg : forall l, 0 <= most_of (map g l)).
  { clear. induction l as [|a l IH]; simpl; [lra|]. apply Rle_trans with (1 := IH), Rmax_r. }
  induction l as [|a l IH]; simpl; intros le; [lra|].
  assert (rest : most_of (map f l) <= most_of (map g l)) by (apply IH; auto). specialize (nonneg l).
  assert (m := Rmax_r (g a) (most_of (map g l))). assert (m' := Rmax_l (g a) (most_of (map g l))).
  apply Rmax_lub; [|lra]. destruct (le a (or_introl eq_refl)); lra.
Qed.

Lemma most_of_nonneg a : 0 <= most_of a.
Proof. induction a; simpl; [lra|]. apply Rle_trans with (1 := IHa), Rmax_r. Qed.

(** The sizes of neighbours differ by at most one. *)
Definition sizes_near (x x' : list R) : Prop := (length x <= S (length x') /\ length x' <= S (length x))%nat.

Lemma trimmed_near j n n' : (n <= S n' -> trimmed j n <= S (trimmed j n'))%nat.
Proof. unfold trimmed. lia. Qed.

Section Bounds.

Variables (round : R -> R) (limit : R) (p : rule) (ends : option (R * R)).
Hypothesis rounds : rounding round limit.
Hypothesis valid : valid_rule p.

Let bounds_of := reach_bounds round limit p ends.

(** What holds for these ends, or for some that no value exceeds, if there are none. *)
Definition close_at (x x' : list R) : Prop :=
  match ends with Some (a, b) => close p a b x x' | None => exists a b, close p a b x x' end.

Lemma greatest_reach_falls x x' s : close_at x x' -> sizes_near x x' ->
  (0 < Z.of_nat (least p) + s)%Z ->
  (match ends with
   | Some _ => True
   | None => Z.abs (s + 1) <= Z.of_nat (trimmed (trim p) (length x)) /\
             Z.abs s <= Z.of_nat (trimmed (trim p) (length x'))
   end)%Z ->
  greatest_reach p ends x (s + 1) <= greatest_reach p ends x' s.
Proof.
  destruct valid as [k1 g0]. unfold close_at, greatest_reach, is_known.
  destruct ends as [[a b]|]; intros near sizes up inside.
  - apply most_of_le. intros t into. apply in_seq in into. apply Rmult_le_compat_l; auto. apply near. lia.
  - destruct near as (a & b & near). destruct inside as [inside inside'].
    apply most_of_zero. intros t into. apply in_seq in into.
    destruct (Z.leb_spec (Z.of_nat (tail_rank (least p) (length x) t) + (s + 1)) (Z.of_nat (length x)));
    [left | now right; lra].
    assert (known : (Z.of_nat (tail_rank (least p) (length x') t) + s <= Z.of_nat (length x'))%Z).
    { destruct sizes. unfold tail_rank in *. nia. }
    destruct (Z.leb_spec (Z.of_nat (tail_rank (least p) (length x') t) + s) (Z.of_nat (length x'))); [|lia].
    apply Rmult_le_compat_l; auto. rewrite (reach_same p 0 0 a b x), (reach_same p 0 0 a b x') by (auto; lia).
    apply near. lia.
Qed.

Lemma reach_one_apart x x' c : close_at x x' -> close_at x' x -> sizes_near x x' ->
  one_rank_apart c (bounds_of x) (bounds_of x').
Proof.
  intros near near' sizes l _. destruct rounds as [mono most]. destruct valid as [k1 g0].
  assert (h := trimmed_near (trim p) (length x') (length x) (proj2 sizes)).
  assert (h' := trimmed_near (trim p) (length x) (length x') (proj1 sizes)).
  assert (known : forall (y y' : list R) l, (trimmed (trim p) (length y') <= S (trimmed (trim p) (length y)))%nat ->
    middle_known p ends (length y') (S l) = true -> middle_known p ends (length y) l = true).
  { unfold middle_known. intros y y' m le. destruct ends; auto. rewrite !Nat.leb_le. lia. }
  assert (inside : forall (y : list R) m, middle_known p ends (length y) m = true ->
    match ends with Some _ => True | None => Z.of_nat m <= Z.of_nat (trimmed (trim p) (length y)) end%Z).
  { unfold middle_known. intros y m. destruct ends; auto. rewrite Nat.leb_le. lia. }
  unfold bounds_of, reach_bounds. cbn [upper lower]. split.
  - destruct ((S l <? least p)%nat && middle_known p ends (length x') (S l))%bool eqn:after.
    + apply andb_prop in after as [lt after]. apply Nat.ltb_lt in lt. assert (before := known _ _ _ h after).
      destruct (Nat.ltb_spec l (least p)); [|lia]. rewrite before. cbn [andb]. apply mono.
      apply inside in after, before. replace (- Z.of_nat l)%Z with (- Z.of_nat (S l) + 1)%Z by lia.
      apply greatest_reach_falls; auto; [lia|]. destruct ends; auto. lia.
    + destruct ((l <? least p)%nat && _)%bool; [apply most | lra].
  - apply mono. destruct (middle_known p ends (length x') (S l)) eqn:after.
    + assert (before := known _ _ _ h after). rewrite before. apply inside in after, before.
      replace (Z.of_nat (S l)) with (Z.of_nat l + 1)%Z by lia.
      apply greatest_reach_falls; auto; [now destruct sizes | lia |]. destruct ends; auto. lia.
    + destruct (middle_known p ends (length x) l); [|lra]. unfold greatest_reach. destruct ends as [[a b]|];
        apply most_of_nonneg.
Qed.

Lemma reach_nested x c : close_at x x -> nested c (bounds_of x).
Proof.
  intros near. assert (apart := reach_one_apart x x (S c) near near ltac:(unfold sizes_near; lia)). split.
  - unfold bounds_of, reach_bounds. cbn [upper lower]. destruct valid as [k1 _].
    assert (known : middle_known p ends (length x) 0 = true) by (unfold middle_known; now destruct ends).
    rewrite known. destruct (Nat.ltb_spec 0 (least p)); [reflexivity | lia].
  - intros l lt. destruct (apart l ltac:(lia)). auto.
Qed.

End Bounds.

(** The 0 in these bounds makes no difference to the statistic where no tail has more than half of the values. *)
Lemma reach_nonneg X n h i : (forall j j', (j <= j')%Z -> X j <= X j') -> (2 * i <= n + 1)%nat ->
  0 <= reach X n h i 0.
Proof.
  intros grows half. unfold reach. rewrite Z.add_0_r, !Z.sub_0_r, Z.add_0_r. set (c := mean_of _ _ _).
  assert (apart := grows (Z.of_nat i - 1)%Z (Z.of_nat n - Z.of_nat i)%Z ltac:(lia)).
  assert (l := Rmax_l (X (Z.of_nat n - Z.of_nat i)%Z - c) (c - X (Z.of_nat i - 1)%Z)).
  assert (r := Rmax_r (X (Z.of_nat n - Z.of_nat i)%Z - c) (c - X (Z.of_nat i - 1)%Z)). lra.
Qed.

(** ** Neighbours *)

Section Neighbours.

Variables (round : R -> R) (limit : R) (ends : option (R * R)).
Hypothesis rounds : rounding round limit.
Hypothesis ordered : valid_ends ends.

Lemma close_at_of p x x' : Forall (valid_value ends) (x ++ x') ->
  (forall a b, a <= b -> between a b (x ++ x') -> close p a b x x') -> close_at p ends x x'.
Proof.
  unfold valid_value, close_at, valid_ends in *. destruct ends as [[a b]|]; intros ok near; [now apply near|].
  destruct (some_ends (x ++ x')) as (a & b & ab & inside). exists a, b. now apply near.
Qed.

Lemma close_at_self p x : Forall (valid_value ends) x -> close_at p ends x x.
Proof.
  intros ok. apply close_at_of; [now apply Forall_app|]. intros a b ab inside. apply close_self; auto.
  now apply Forall_app in inside.
Qed.

Lemma close_at_replaced p x x' : replace_one (valid_value ends) x x' -> close_at p ends x x'.
Proof.
  intros (ok & ok' & y & v & v' & z & -> & ->). apply close_at_of; [now apply Forall_app|].
  intros a b ab inside. apply Forall_app in inside as [in_x in_x']. now apply close_replaced.
Qed.

Lemma close_at_added p x x' : adds (valid_value ends) x x' -> close_at p ends x x' /\ close_at p ends x' x.
Proof.
  intros (ok' & y & v & z & -> & ->). assert (ok : Forall (valid_value ends) (y ++ z)).
  { apply Forall_app in ok' as [left right]. inversion right; subst. now apply Forall_app. }
  split; apply close_at_of; try (now apply Forall_app); intros a b ab inside; apply Forall_app in inside as [one two];
    now apply close_added.
Qed.

(** The bounds satisfy Definition 3.4 when a record is replaced (they do not move in one direction) ... *)
Theorem reach_one_rank_apart p x x' c : valid_rule p -> replace_one (valid_value ends) x x' ->
  one_rank_apart c (reach_bounds round limit p ends x) (reach_bounds round limit p ends x').
Proof.
  intros valid pair. assert (back := replace_one_sym _ _ _ pair). apply reach_one_apart; auto.
  - now apply close_at_replaced.
  - now apply close_at_replaced.
  - destruct pair as (_ & _ & y & v & v' & z & -> & ->). unfold sizes_near. rewrite !app_length. simpl. lia.
Qed.

(** ... and when one is added or removed, from no records on. *)
Theorem reach_private_n_one_rank_apart p x x' c : valid_rule p -> add_or_remove_one (valid_value ends) x x' ->
  one_rank_apart c (reach_bounds round limit p ends x) (reach_bounds round limit p ends x').
Proof.
  intros valid pair.
  assert (close_both : close_at p ends x x' /\ close_at p ends x' x).
  { destruct pair as [more | less]; [now apply close_at_added | now apply and_comm, close_at_added]. }
  apply reach_one_apart; try apply close_both; auto.
  destruct pair as [(_ & y & v & z & -> & ->) | (_ & y & v & z & -> & ->)]; unfold sizes_near; rewrite !app_length;
  simpl;
    lia.
Qed.

Lemma reach_bounds_nested p x c : valid_rule p -> Forall (valid_value ends) x ->
  nested c (reach_bounds round limit p ends x).
Proof. intros valid ok. apply reach_nested; auto. now apply close_at_self. Qed.

(** So the statistic, released by hazard selection with power 5, is private, for public settings that may depend on a
    public number of records ... *)
Theorem private_reach_is_private eps q public rules :
  exp (- (eps / INR share_general)) <= q <= 1 -> (forall n, valid_rule (rules n)) ->
  private eps (replace_one (valid_value ends))
    (fun x => private_reach q (public (length x)) round limit (rules (length x)) ends x).
Proof.
  intros ratio valid.
  assert (way : forall x x', replace_one (valid_value ends) x x' ->
    within eps (private_reach q (public (length x)) round limit (rules (length x)) ends x)
               (private_reach q (public (length x')) round limit (rules (length x')) ends x')).
  { intros x x' pair. assert (back := replace_one_sym _ _ _ pair).
    assert (size : length x' = length x).
    { destruct pair as (_ & _ & before & v & v' & after & -> & ->). now rewrite !app_length. }
    rewrite size. apply release_private_general; auto.
    - apply reach_bounds_nested; auto. apply pair.
    - apply reach_bounds_nested; auto. apply pair.
    - now apply reach_one_rank_apart.
    - now apply reach_one_rank_apart. }
  intros x x' pair. split; apply way; auto. now apply replace_one_sym.
Qed.

(** ... or on none. *)
Theorem private_reach_private_n_is_private eps q public p :
  exp (- (eps / INR share_general)) <= q <= 1 -> valid_rule p ->
  private eps (add_or_remove_one (valid_value ends)) (private_reach q public round limit p ends).
Proof.
  intros ratio valid.
  assert (first : forall x x', add_or_remove_one (valid_value ends) x x' -> Forall (valid_value ends) x).
  { intros x x' [(ok' & y & v & z & -> & ->) | (ok & _)]; auto.
    apply Forall_app in ok' as [left right]. inversion right; subst. now apply Forall_app. }
  assert (way : forall x x', add_or_remove_one (valid_value ends) x x' ->
    within eps (private_reach q public round limit p ends x) (private_reach q public round limit p ends x')).
  { intros x x' pair. assert (back := add_or_remove_sym _ _ _ pair). apply release_private_general; auto.
    - apply reach_bounds_nested; auto. now apply first with x'.
    - apply reach_bounds_nested; auto. now apply first with x.
    - now apply reach_private_n_one_rank_apart.
    - now apply reach_private_n_one_rank_apart. }
  intros x x' pair. split; apply way; auto. now apply add_or_remove_sym.
Qed.

(** ** The default for a variance, end to end: this statistic, of which the scale is made, and then noise *)

Theorem adaptive_variance_is_private eps_a eps_b q public rules stages_of : 0 < eps_b ->
  exp (- (eps_a / INR share_general)) <= q <= 1 -> (forall n, valid_rule (rules n)) -> valid_stages stages_of ->
  private (eps_a + eps_b) (replace_one (valid_value ends)) (variance_stages eps_b stages_of
    (fun x => private_reach q (public (length x)) round limit (rules (length x)) ends x)).
Proof.
  intros b0 ratio valid settings. apply variance_stages_private; auto.
  - now apply private_reach_is_private.
  - intros x. apply hazard_release_nonneg; [unfold power_general; lia|].
    apply Rlt_le_trans with (2 := proj1 ratio), exp_pos.
Qed.

(** With a private number of records a noisy count comes first, on which all settings may depend. *)
Theorem adaptive_variance_private_n_is_private eps eps_a eps_b q seen_counts seen public rules stages_of :
  0 < eps -> 0 < eps_b -> eps_a + eps_b = eps - share_count * eps ->
  exp (- (eps_a / INR share_general)) <= q <= 1 -> (forall m, valid_rule (rules m)) -> NoDup seen ->
  (forall m, (0 < fineness (stages_of m))%nat /\ forall drawn, 0 < clip (stages_of m) drawn) ->
  private eps (add_or_remove_one (valid_value ends))
    (counted (share_count * eps) seen_counts (fun x => Z.of_nat (length x))
      (fun m => private_n_stages eps_b (stages_of m) seen clipped_squares
        (private_reach q (public m) round limit (rules m) ends))).
Proof.
  intros pos b0 shares ratio valid once settings. apply counted_stages_are_private with eps_a; auto.
  - intros m. now apply private_reach_private_n_is_private.
  - intros m x. apply hazard_release_nonneg; [unfold power_general; lia|].
    apply Rlt_le_trans with (2 := proj1 ratio), exp_pos.
Qed.

End Neighbours.
