(** A table of counts with zero-sum geometric noise (classification, A; [zero_sum_laplaces] in _random.py). *)
From Coq Require Import Reals Lra Lia List ZArith Bool.
From DP Require Import Laws MeanLoss.
Import ListNotations.
Open Scope R_scope.

(** ** Definitions *)

(** The table of a data set: how many of its records lie in each of the cells 0, ..., cells - 1. *)
Definition in_cell (c record : nat) : Z := if (record =? c)%nat then 1 else 0.
Fixpoint cell_count (x : list nat) (c : nat) : Z :=
  match x with [] => 0 | record :: x => in_cell c record + cell_count x c end.
Definition table (cells : nat) (x : list nat) : list Z := map (cell_count x) (seq 0 cells).

(** One record moves to another cell. *)
Definition moves (cells : nat) (x x' : list nat) : Prop :=
  exists before c c' after, (c < cells)%nat /\ (c' < cells)%nat /\
    x = before ++ c :: after /\ x' = before ++ c' :: after.

Fixpoint sum (z : list Z) : Z := match z with [] => 0 | a :: z => a + sum z end.
Fixpoint size (z : list Z) : Z := match z with [] => 0 | a :: z => Z.abs a + size z end.
Fixpoint minus (o x : list Z) : list Z :=
  match o, x with a :: o, b :: x => (a - b)%Z :: minus o x | _, _ => [] end.

(** Noise z with sum 0 has a probability proportional to exp(-rate (|z_1| + ... + |z_k|)); [norm] is the sum
    of these over all such z. *)
Definition zero_sum_noise (rate norm : R) (z : list Z) : R :=
  if (sum z =? 0)%Z then exp (- rate * IZR (size z)) / norm else 0.

(** The noisy table, on any finite list of tables of the right length. *)
Definition zero_sum_law (rate norm : R) (outs : list (list Z)) (t : list Z) : law (list Z) :=
  Law outs (fun o => zero_sum_noise rate norm (minus o t)).

(** ** Facts *)

(** The draw: all but the last are independent, kept with probability exp(-rate |their sum|), and the last is
    minus their sum. What is kept has the probability above, up to a factor that is the same for all. *)
Theorem zero_sum_draw rate z :
  exp (- rate * IZR (size z)) * exp (- rate * IZR (Z.abs (sum z))) = exp (- rate * IZR (size (z ++ [(- sum z)%Z]))).
Proof.
  assert (app : forall y, size (y ++ [(- sum z)%Z]) = (size y + Z.abs (sum z))%Z)
    by (induction y as [|a y IH]; simpl; [|rewrite IH]; lia).
  rewrite <- exp_plus, app, plus_IZR. f_equal. ring.
Qed.

Lemma sum_minus o : forall t, length o = length t -> sum (minus o t) = (sum o - sum t)%Z.
Proof. induction o as [|a o IH]; intros [|b t] same; try discriminate; simpl in *; auto. rewrite IH; lia. Qed.

Lemma size_minus o : forall t t', length o = length t -> length t = length t' ->
  (size (minus o t') <= size (minus o t) + size (minus t t'))%Z.
Proof.
  induction o as [|a o IH]; intros [|b t] [|b' t'] same same'; try discriminate; simpl in *; try lia.
  specialize (IH t t' ltac:(lia) ltac:(lia)). lia.
Qed.

Lemma cell_count_app x y c : cell_count (x ++ y) c = (cell_count x c + cell_count y c)%Z.
Proof. induction x; simpl; lia. Qed.

(** Replacing a record changes two cells by 1 each, and not the sum. *)
Theorem table_moves cells x x' : moves cells x x' ->
  sum (table cells x) = sum (table cells x') /\ (size (minus (table cells x) (table cells x')) <= 2)%Z.
Proof.
  intros (before & c & c' & after & lt & lt' & -> & ->). unfold table.
  assert (sums : forall first n record,
    sum (map (fun i => in_cell i record) (seq first n))
      = if ((first <=? record) && (record <? first + n))%nat then 1%Z else 0%Z).
  { intros first n record. revert first. induction n as [|n IH]; intros first; cbn [seq map sum].
    - destruct (Nat.leb_spec first record), (Nat.ltb_spec record (first + 0)); simpl; lia.
    - rewrite IH. unfold in_cell.
      destruct (Nat.eqb_spec record first), (Nat.leb_spec first record), (Nat.leb_spec (S first) record),
        (Nat.ltb_spec record (S first + n)), (Nat.ltb_spec record (first + S n)); simpl; lia. }
  assert (ones : forall record, (record < cells)%nat -> sum (map (fun i => in_cell i record) (seq 0 cells)) = 1%Z).
  { intros record lt0. rewrite sums. destruct (Nat.ltb_spec record (0 + cells)); simpl; lia. }
  assert (d := ones c lt). assert (d' := ones c' lt'). clear sums ones lt lt'.
  assert (both : forall l, (sum (map (cell_count (before ++ c :: after)) l)
    - sum (map (cell_count (before ++ c' :: after)) l)
      = sum (map (fun i => in_cell i c) l) - sum (map (fun i => in_cell i c') l) /\
    size (minus (map (cell_count (before ++ c :: after)) l) (map (cell_count (before ++ c' :: after)) l))
      <= sum (map (fun i => in_cell i c) l) + sum (map (fun i => in_cell i c') l))%Z).
  { induction l as [|i l [IH1 IH2]]; cbn [map sum size minus]; [lia|].
    rewrite !cell_count_app. cbn [cell_count]. unfold in_cell in *. destruct (c =? i)%nat, (c' =? i)%nat; lia. }
  destruct (both (seq 0 cells)) as [equal small]. lia.
Qed.

(** Tables of neighbours, with noise of rate epsilon / 2, are within epsilon. *)
Theorem zero_sum_private eps norm cells outs : 0 < eps -> 0 < norm ->
  (forall o, In o outs -> length o = cells) ->
  private eps (moves cells) (fun x => zero_sum_law (eps / 2) norm outs (table cells x)).
Proof.
  intros eps0 norm0 lengths.
  assert (way : forall x x', moves cells x x' ->
    within eps (zero_sum_law (eps / 2) norm outs (table cells x)) (zero_sum_law (eps / 2)
      norm outs (table cells x'))).
  { intros x x' pair. destruct (table_moves _ _ _ pair) as [equal small].
    assert (long : forall x, length (table cells x) = cells) by (intros; unfold table;
      now rewrite map_length, seq_length).
    apply within_of_outcomes; auto. intros o into. cbn [mass zero_sum_law]. unfold zero_sum_noise.
    rewrite !sum_minus by (rewrite long; auto). rewrite equal.
    destruct (sum o - sum (table cells x') =? 0)%Z; [|lra].
    assert (far := size_minus o (table cells x) (table cells x') ltac:(rewrite long; auto) ltac:(now rewrite !long)).
    unfold Rdiv. rewrite <- Rmult_assoc, <- exp_plus. apply Rmult_le_compat_r; [left; now apply Rinv_0_lt_compat|].
    assert (le : IZR (size (minus o (table cells x'))) <= IZR (size (minus o (table cells x))) + 2)
      by (rewrite <- plus_IZR; apply IZR_le; lia).
    assert (grow : - (eps * / 2) * IZR (size (minus o (table cells x))) <=
      eps + - (eps * / 2) * IZR (size (minus o (table cells x')))) by nra.
    destruct grow as [lt | ->]; [left; now apply exp_increasing | right; reflexivity]. }
  intros x x' pair. split; apply way; auto.
  destruct pair as (before & c & c' & after & lt & lt' & -> & ->). now exists before, c', c, after.
Qed.
