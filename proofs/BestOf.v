(** The best of a random number of private scores (theory, 9; [PrivateRandomizedSearch] draws so). *)
From Coq Require Import Reals Lra Lia List ZArith.
From Coquelicot Require Import Coquelicot.
From DP Require Import Laws.
Import ListNotations.
Open Scope R_scope.

(** ** Definitions *)

(** One trial draws a candidate and its score, from the law [trial]; [better] compares what was drawn, and
    J trials are made, where P(J = j + 1) = gamma (1 - gamma)^j. The first best trial is released. *)
Section Best.

Context {A : Type}.
Variable worse : A -> A -> bool.  (* worse b a: trial b has a lower score than a *)

Definition strictly_below (trial : law A) (a : A) : R := prob trial (fun b => worse b a).
Definition not_above (trial : law A) (a : A) : R := prob trial (fun b => negb (worse a b)).

(** The probability that [a] is the first best of j + 1 trials: it is drawn in some trial i, all before are
    below it and none after is above it. *)
Definition best_of (trial : law A) (j : nat) (a : A) : R :=
  sum_f_R0 (fun i => strictly_below trial a ^ i * mass trial a * not_above trial a ^ (j - i)) j.

(** The probability of releasing [a], in closed form. *)
Definition best_mass (gamma : R) (trial : law A) (a : A) : R :=
  gamma * mass trial a /
    ((1 - (1 - gamma) * strictly_below trial a) * (1 - (1 - gamma) * not_above trial a)).

Definition best_law (gamma : R) (trial : law A) : law A := Law (outcomes trial) (best_mass gamma trial).

(** ** Facts *)

Lemma prob_range (m : law A) event : is_law m -> 0 <= prob m event <= 1.
Proof.
  intros (_ & nonneg & one). unfold prob. split.
  - apply sum_of_nonneg. intros a into. destruct (event a); [auto | lra].
  - rewrite <- one. apply sum_of_le. intros a into. specialize (nonneg a into). destruct (event a); lra.
Qed.

Lemma prob_not (m : law A) event : is_law m -> prob m (fun a => negb (event a)) = 1 - prob m event.
Proof.
  intros (_ & _ & one). rewrite <- one. unfold prob. clear one.
  induction (outcomes m) as [|a l IH]; simpl; [ring|]. rewrite IH. destruct (event a); simpl; ring.
Qed.

(** The closed form is the sum over all numbers of trials. *)
Theorem best_mass_is_mixture gamma trial a : 0 < gamma <= 1 -> is_law trial ->
  is_series (fun j => gamma * (1 - gamma) ^ j * best_of trial j a) (best_mass gamma trial a).
Proof.
  intros g01 ok. set (L := strictly_below trial a). set (M := not_above trial a).
  assert (L01 : 0 <= L <= 1) by now apply prob_range. assert (M01 : 0 <= M <= 1) by now apply prob_range.
  assert (small : forall p, 0 <= p <= 1 -> Rabs ((1 - gamma) * p) < 1)
    by (intros p p01; rewrite Rabs_right; nra).
  assert (geom : forall p, 0 <= p <= 1 -> is_series (fun i => ((1 - gamma) * p) ^ i) (/ (1 - (1 - gamma) * p)))
    by (intros p p01; apply is_series_geom, small, p01).
  assert (geom_abs : forall p, 0 <= p <= 1 -> ex_series (fun i => Rabs (((1 - gamma) * p) ^ i))).
  { intros p p01. exists (/ (1 - (1 - gamma) * p)). apply is_series_ext with (2 := geom p p01).
    intros i. rewrite Rabs_right; auto. apply Rle_ge, pow_le. nra. }
  assert (product := is_series_mult _ _ _ _ (geom L L01) (geom M M01) (geom_abs L L01) (geom_abs M M01)).
  apply (is_series_scal_l (gamma * mass trial a)) in product. unfold best_mass. fold L M.
  assert (pos : forall p, 0 <= p <= 1 -> 1 - (1 - gamma) * p <> 0) by (intros p p01; nra).
  replace (gamma * mass trial a / _) with
    (gamma * mass trial a * (/ (1 - (1 - gamma) * L) * / (1 - (1 - gamma) * M)))
    by (field; split; apply pos; auto).
  apply is_series_ext with (2 := product). intros j. unfold best_of. fold L M.
  unfold scal; simpl; unfold mult; simpl.
  rewrite !scal_sum. apply sum_eq. intros i le.
  rewrite !Rpow_mult_distr.
  replace ((1 - gamma) ^ j) with ((1 - gamma) ^ i * (1 - gamma) ^ (j - i)) by (rewrite <- pow_add; f_equal; lia).
  ring.
Qed.

(** If one trial is epsilon-differentially private, then releasing the first best one is 3 epsilon-differentially
    private, whatever gamma. *)
Theorem best_private eps gamma (trial trial' : law A) : 0 < gamma <= 1 -> 0 <= eps ->
  is_law trial -> is_law trial' ->
  (forall a, In a (outcomes trial) -> mass trial a <= exp eps * mass trial' a) ->
  within eps trial trial' -> within eps trial' trial ->
  within (3 * eps) (best_law gamma trial) (best_law gamma trial').
Proof.
  intros g01 eps0 ok ok' point [same le] [_ le']. apply within_of_outcomes; [exact same|]. intros a into.
  simpl in *. unfold best_mass.
  assert (e1 : 1 <= exp eps) by (rewrite <- exp_0; destruct eps0 as [lt | <-]; [left;
    now apply exp_increasing | right; reflexivity]).
  assert (rest : forall event, prob trial' event <= 1 /\ prob trial event <= 1 /\
    0 < 1 - (1 - gamma) * prob trial event /\ 0 < 1 - (1 - gamma) * prob trial' event /\
    1 - (1 - gamma) * prob trial' event <= exp eps * (1 - (1 - gamma) * prob trial event)).
  { intros event. assert (r := prob_range trial event ok). assert (r' := prob_range trial' event ok').
    assert (q := le' (fun b => negb (event b))). rewrite !prob_not in q by auto. repeat split; nra. }
  destruct (rest (fun b => worse b a)) as (_ & _ & d & d' & r). fold (strictly_below trial a) in *.
  destruct (rest (fun b => negb (worse a b))) as (_ & _ & c & c' & s).
  fold (strictly_below trial a) (strictly_below trial' a) in *. fold (not_above trial a) (not_above trial' a) in *.
  set (D := 1 - (1 - gamma) * strictly_below trial a) in *.
  set (D' := 1 - (1 - gamma) * strictly_below trial' a) in *.
  set (E := 1 - (1 - gamma) * not_above trial a) in *. set (E' := 1 - (1 - gamma) * not_above trial' a) in *.
  specialize (point a into). destruct ok as (_ & nonneg & _). specialize (nonneg a into).
  replace (3 * eps) with (eps + (eps + eps)) by ring. rewrite !exp_plus.
  apply Rmult_le_reg_r with (D * E * (D' * E')); [repeat apply Rmult_lt_0_compat; lra|].
  replace (gamma * mass trial a / (D * E) * (D * E * (D' * E'))) with (gamma * (mass trial a * (D' * E')))
    by (field; lra).
  replace (exp eps * (exp eps * exp eps) * (gamma * mass trial' a / (D' * E')) * (D * E * (D' * E')))
    with (gamma * (exp eps * mass trial' a * ((exp eps * D) * (exp eps * E)))) by (field; lra).
  apply Rmult_le_compat_l; [lra|]. apply Rmult_le_compat; [auto | | auto |].
  - apply Rmult_le_pos; lra.
  - apply Rmult_le_compat; lra.
Qed.

End Best.
