(** Output bounds, ranks, and how far a rank can move (theory, 1 and 2; [run_edges] in _laws.py). *)
From Coq Require Import Reals Lra Lia List ZArith.
From DP Require Import Constants Laws HazardLaw HazardRelease.
Import ListNotations.
Open Scope R_scope.

(** ** Definitions *)

(** The output bounds of one data set: L^l and U^l for ranks l = 0, 1, ..., c. *)
Record bounds := Bounds { lower : nat -> R; upper : nat -> R }.

(** The metric f is L^0. *)
Definition value (b : bounds) : R := lower b 0.

(** L^0 = U^0 = f, and the intervals from L^l to U^l grow with l. *)
Definition nested (c : nat) (b : bounds) : Prop :=
  lower b 0 = upper b 0 /\
  forall l, (l < c)%nat -> lower b (S l) <= lower b l /\ upper b l <= upper b (S l).

(** Definition 3.4 of the paper, one way: between neighbours, one rank more undoes the change of one record.
    (That L^l and U^l bound the metric of all data sets at distance l follows by adding these up.) *)
Definition one_rank_apart (c : nat) (b b' : bounds) : Prop :=
  forall l, (l < c)%nat -> upper b l <= upper b' (S l) /\ lower b' (S l) <= lower b l.

(** All bounds of [b] are at most those of [b']. *)
Definition below (c : nat) (b b' : bounds) : Prop :=
  forall l, (l <= c)%nat -> lower b l <= lower b' l /\ upper b l <= upper b' l.

(** The first of [n] numbers from [l] on that is [ok], or l + n if there is none. *)
Fixpoint first_from (ok : nat -> bool) (l n : nat) : nat :=
  match n with O => l | S n => if ok l then l else first_from ok (S l) n end.

Definition reaches (b : bounds) (t : R) (l : nat) : bool :=
  if Rle_dec (lower b l) t then if Rle_dec t (upper b l) then true else false else false.

(** len(x;t): the first rank l <= c with L^l <= t <= U^l, or c + 1. *)
Definition len (c : nat) (b : bounds) (t : R) : nat := first_from (reaches b t) 0 (S c).

(** The reflective inverse sensitivity s(x;t) = max(len, 1) - 1/2 if t >= f(x), and -(len - 1/2) if not ... *)
Definition rank (c : nat) (b : bounds) (t : R) : R :=
  if Rle_dec (value b) t then INR (max (len c b t) 1) - 1 / 2 else - (INR (len c b t) - 1 / 2).

(** ... and s(x;t) - 1/2, which is a whole number. *)
Definition level (c : nat) (b : bounds) (t : R) : Z :=
  if Rle_dec (value b) t then Z.of_nat (max (len c b t) 1 - 1) else (- Z.of_nat (len c b t))%Z.

(** The hazard release of a metric with these bounds, on the public outputs grid 0, ..., grid K. *)
Definition hazard_release (p : nat) (q : R) (grid : nat -> R) (K c : nat) (b : bounds) : law nat :=
  hazard_law p (weight q (fun k => level c b (grid k))) K.

(** ** Facts *)

Lemma level_is_rank c b t : IZR (level c b t) = rank c b t - 1 / 2.
Proof.
  unfold level, rank. destruct (Rle_dec (value b) t).
  - rewrite <- INR_IZR_INZ, minus_INR by lia. simpl (INR 1). lra.
  - rewrite opp_IZR, <- INR_IZR_INZ. lra.
Qed.

Lemma first_from_le ok l n : (l <= first_from ok l n <= l + n)%nat.
Proof.
  revert l. induction n as [|n IH]; intros l; simpl; [lia|]. destruct (ok l); [lia|].
  specialize (IH (S l)). lia.
Qed.

Lemma first_from_ok ok l n : (first_from ok l n < l + n)%nat -> ok (first_from ok l n) = true.
Proof.
  revert l. induction n as [|n IH]; intros l; simpl; intros lt; [lia|]. destruct (ok l) eqn:found; auto.
  apply IH. lia.
Qed.

Lemma first_from_least ok l n m : (l <= m)%nat -> ok m = true -> (first_from ok l n <= m)%nat.
Proof.
  revert l. induction n as [|n IH]; intros l le found; simpl; auto. destruct (ok l) eqn:here; auto.
  apply IH; auto. destruct (Nat.eq_dec l m) as [->|]; [congruence | lia].
Qed.

Lemma reaches_spec b t l : reaches b t l = true <-> lower b l <= t <= upper b l.
Proof.
  unfold reaches. destruct (Rle_dec (lower b l) t), (Rle_dec t (upper b l)); split; intros; try easy; lra.
Qed.

Lemma len_le c b t : (len c b t <= S c)%nat.
Proof. apply (first_from_le (reaches b t) 0 (S c)). Qed.

Lemma len_reaches c b t : (len c b t <= c)%nat -> lower b (len c b t) <= t <= upper b (len c b t).
Proof. intros le. apply reaches_spec, first_from_ok. fold (len c b t). lia. Qed.

Lemma len_least c b t l : lower b l <= t <= upper b l -> (len c b t <= l)%nat.
Proof. intros inside. apply first_from_least; [lia | now apply reaches_spec]. Qed.

Lemma nested_ends c b l : nested c b -> (l <= c)%nat -> lower b l <= value b <= upper b l.
Proof.
  intros [same grow]. unfold value. induction l as [|l IH]; intros le; [lra|].
  assert (le' : (l <= c)%nat) by lia. specialize (IH le'). specialize (grow l ltac:(lia)). lra.
Qed.

Lemma len_next c b b' t : one_rank_apart c b b' -> (len c b' t <= S (len c b t))%nat.
Proof.
  intros apart. destruct (Nat.le_gt_cases c (len c b t)) as [far | near].
  - assert (q := len_le c b' t). lia.
  - assert (inside := len_reaches c b t ltac:(lia)). apply len_least.
    destruct (apart (len c b t) near). lra.
Qed.

Lemma len_0 c b t : t < value b -> (1 <= len c b t)%nat.
Proof.
  intros lt. destruct (Nat.eq_dec (len c b t) 0) as [zero|]; [|lia].
  assert (inside := len_reaches c b t ltac:(lia)). rewrite zero in inside. unfold value in lt. lra.
Qed.

(** Where an output lies between the metrics of two neighbours, it is next to both. *)
Lemma len_between c b b' t : nested c b -> nested c b' -> one_rank_apart c b b' -> one_rank_apart c b' b ->
  value b <= t < value b' -> (len c b t <= 1 /\ len c b' t <= 1)%nat.
Proof.
  intros nest nest' apart apart' [ge lt]. destruct c as [|c].
  - split; apply len_le.
  - destruct (apart 0%nat ltac:(lia)) as [_ down]. destruct (apart' 0%nat ltac:(lia)) as [up _].
    destruct nest as [same grow], nest' as [same' grow']. unfold value in *.
    destruct (grow 0%nat ltac:(lia)), (grow' 0%nat ltac:(lia)). split; apply len_least; lra.
Qed.

(** ** 3. Under Definition 3.4 the rank of every output moves by at most 1 *)

Theorem level_moves_by_one c b b' : nested c b -> nested c b' ->
  one_rank_apart c b b' -> one_rank_apart c b' b ->
  forall t, (Z.abs (level c b t - level c b' t) <= 1)%Z.
Proof.
  intros nest nest' apart apart' t.
  assert (next := len_next c b b' t apart). assert (next' := len_next c b' b t apart').
  unfold level. destruct (Rle_dec (value b) t) as [ge | lt], (Rle_dec (value b') t) as [ge' | lt']; try lia.
  - apply Rnot_le_lt in lt'. assert (q := len_0 c b' t lt').
    assert (near := len_between c b b' t nest nest' apart apart' (conj ge lt')). lia.
  - apply Rnot_le_lt in lt. assert (q := len_0 c b t lt).
    assert (near := len_between c b' b t nest' nest apart' apart (conj ge' lt)). lia.
Qed.

(** If all bounds of one data set are the lower ones, then so are its distances above, for all outputs at
    once: its ranks are the higher ones. *)
Theorem level_one_directed c b b' : nested c b -> nested c b' -> below c b b' ->
  forall t, (level c b' t <= level c b t)%Z.
Proof.
  intros nest nest' order t. assert (metric : value b <= value b') by (apply order; lia).
  unfold level. destruct (Rle_dec (value b) t) as [ge | lt], (Rle_dec (value b') t) as [ge' | lt']; try lia; try lra.
  - assert (len c b' t <= len c b t)%nat; [|lia].
    destruct (Nat.le_gt_cases (len c b t) c) as [near | far].
    + assert (inside := len_reaches c b t near). apply len_least.
      destruct (order _ near). assert (q := nested_ends c b' _ nest' near). lra.
    + assert (q := len_le c b' t). lia.
  - assert (len c b t <= len c b' t)%nat; [|lia].
    destruct (Nat.le_gt_cases (len c b' t) c) as [near | far].
    + assert (inside := len_reaches c b' t near). apply len_least.
      destruct (order _ near). assert (q := nested_ends c b _ nest near). lra.
    + assert (q := len_le c b t). lia.
Qed.

(** ** The runs of the program give the same levels *)

Fixpoint count (ok : nat -> bool) (c : nat) : nat :=
  match c with O => O | S c' => (if ok c then 1 else 0) + count ok c' end.

(** [run_edges]: at or above the metric, the number of ranks l = 1, ..., c with U^l < t; below it,
    minus one more than the number of those with t < L^l. *)
Definition runs_level (c : nat) (b : bounds) (t : R) : Z :=
  if Rle_dec (value b) t then Z.of_nat (count (fun l => if Rlt_dec (upper b l) t then true else false) c)
  else (- Z.of_nat (1 + count (fun l => if Rlt_dec t (lower b l) then true else false) c))%Z.

Lemma count_first (ok : nat -> bool) c m : (m <= c)%nat ->
  (forall l, (1 <= l <= m)%nat -> ok l = true) -> (forall l, (m < l <= c)%nat -> ok l = false) ->
  count ok c = m.
Proof.
  assert (all : forall m, (forall l, (1 <= l <= m)%nat -> ok l = true) -> count ok m = m).
  { clear. induction m as [|m IH]; intros yes; auto. cbn [count]. rewrite yes by lia. cbn. f_equal.
    apply IH. intros. apply yes. lia. }
  intros le yes no. induction c as [|c IH].
  - cbn. lia.
  - destruct (Nat.eq_dec m (S c)) as [-> | differ]; [now apply all|].
    cbn [count]. rewrite no by lia. cbn. apply IH; [lia|]. intros. apply no. lia.
Qed.

Lemma nested_le c b l m : nested c b -> (l <= m <= c)%nat -> lower b m <= lower b l /\ upper b l <= upper b m.
Proof.
  intros [_ grow] [le le']. induction le as [|m le IH]; [lra|].
  specialize (IH ltac:(lia)). specialize (grow m ltac:(lia)). lra.
Qed.

Theorem runs_level_is_level c b t : nested c b -> runs_level c b t = level c b t.
Proof.
  intros nest. assert (top := len_le c b t). unfold runs_level, level.
  destruct (Rle_dec (value b) t) as [ge | lt]; f_equal.
  - apply count_first; [lia | |].
    + intros l [l1 le]. destruct (Rlt_dec (upper b l) t) as [|up]; auto.
      assert (len c b t <= l)%nat; [|lia]. apply len_least.
      assert (q := nested_ends c b l nest ltac:(lia)). lra.
    + intros l [l1 le]. destruct (Rlt_dec (upper b l) t) as [up|]; auto.
      assert (inside := len_reaches c b t ltac:(lia)).
      assert (q := nested_le c b (len c b t) l nest ltac:(lia)). lra.
  - assert (one := len_0 c b t ltac:(lra)). f_equal.
    replace (len c b t) with (1 + (len c b t - 1))%nat by lia. f_equal. apply count_first; [lia | |].
    + intros l [l1 le]. destruct (Rlt_dec t (lower b l)) as [|down]; auto.
      assert (len c b t <= l)%nat; [|lia]. apply len_least.
      assert (q := nested_ends c b l nest ltac:(lia)). lra.
    + intros l [l1 le]. destruct (Rlt_dec t (lower b l)) as [down|]; auto.
      assert (inside := len_reaches c b t ltac:(lia)).
      assert (q := nested_le c b (len c b t) l nest ltac:(lia)). lra.
Qed.

(** ** Any metric with output bounds is released privately *)

Theorem release_private_general eps q grid K c b b' :
  exp (- (eps / INR share_general)) <= q <= 1 ->
  nested c b -> nested c b' -> one_rank_apart c b b' -> one_rank_apart c b' b ->
  within eps (hazard_release power_general q grid K c b) (hazard_release power_general q grid K c b').
Proof.
  intros ratio nest nest' apart apart'. apply hazard_private_general; auto.
  intros k. now apply level_moves_by_one.
Qed.

Theorem release_private_monotonic eps q grid K c b b' :
  exp (- (eps / INR share_monotonic)) <= q <= 1 ->
  nested c b -> nested c b' -> one_rank_apart c b b' -> one_rank_apart c b' b -> below c b b' ->
  within eps (hazard_release power_monotonic q grid K c b) (hazard_release power_monotonic q grid K c b') /\
  within eps (hazard_release power_monotonic q grid K c b') (hazard_release power_monotonic q grid K c b).
Proof.
  intros ratio nest nest' apart apart' order.
  apply and_comm, hazard_private_monotonic; auto. intros k.
  assert (near := level_moves_by_one c b b' nest nest' apart apart' (grid k)).
  assert (up := level_one_directed c b b' nest nest' order (grid k)). lia.
Qed.
