(** Finite laws, differential privacy, post-processing and composition. *)
From Coq Require Import Reals Lra List FinFun.
Import ListNotations.
Open Scope R_scope.

(** ** Definitions *)

(** A law: finitely many outcomes, and the probability of each. *)
Record law (A : Type) := Law { outcomes : list A; mass : A -> R }.
Arguments Law {A}.
Arguments outcomes {A}.
Arguments mass {A}.

Fixpoint sum_of {A} (f : A -> R) (l : list A) : R :=
  match l with [] => 0 | a :: rest => f a + sum_of f rest end.

(** The probability of an event, a set of outcomes. *)
Definition prob {A} (m : law A) (event : A -> bool) : R :=
  sum_of (fun a => if event a then mass m a else 0) (outcomes m).

(** What makes a law a probability law. *)
Definition is_law {A} (m : law A) : Prop :=
  NoDup (outcomes m) /\ (forall a, In a (outcomes m) -> 0 <= mass m a) /\ sum_of (mass m) (outcomes m) = 1.

(** Two laws on the same outcomes are within [eps] if no event is more than exp(eps) times as likely under
    the first as under the second. *)
Definition within {A} (eps : R) (m m' : law A) : Prop :=
  outcomes m = outcomes m' /\ forall event, prob m event <= exp eps * prob m' event.

(** Differential privacy: the laws of any two neighbouring data sets are within [eps], either way. *)
Definition private {X A} (eps : R) (neighbours : X -> X -> Prop) (mechanism : X -> law A) : Prop :=
  forall x x', neighbours x x' ->
    within eps (mechanism x) (mechanism x') /\ within eps (mechanism x') (mechanism x).

(** Two stages: the second law may depend on what the first has drawn, and both outcomes are released. *)
Definition then_ {A B} (first : law A) (second : A -> law B) : law (A * B) :=
  Law (flat_map (fun a => map (pair a) (outcomes (second a))) (outcomes first))
      (fun ab => mass first (fst ab) * mass (second (fst ab)) (snd ab)).

(** A coin that shows heads with probability p decides which of two mechanisms is used, and both the side and the
    outcome are released. *)
Definition by_coin {X A B} (p : R) (heads : X -> law A) (tails : X -> law B) (x : X) : law (A + B) :=
  Law (map inl (outcomes (heads x)) ++ map inr (outcomes (tails x)))
      (fun side => match side with inl a => p * mass (heads x) a | inr b => (1 - p) * mass (tails x) b end).

(** ** Facts *)

Lemma sum_of_le {A} (f g : A -> R) l : (forall a, In a l -> f a <= g a) -> sum_of f l <= sum_of g l.
Proof.
  induction l as [|a l IH]; simpl; intros le; [lra|].
  assert (f a <= g a) by auto. assert (sum_of f l <= sum_of g l) by auto. lra.
Qed.

Lemma sum_of_ext {A} (f g : A -> R) l : (forall a, In a l -> f a = g a) -> sum_of f l = sum_of g l.
Proof.
  induction l as [|a l IH]; simpl; intros same; auto. rewrite same, IH; auto.
Qed.

Lemma sum_of_scal {A} (c : R) (f : A -> R) l : sum_of (fun a => c * f a) l = c * sum_of f l.
Proof. induction l; simpl; [|rewrite IHl]; ring. Qed.

Lemma sum_of_app {A} (f : A -> R) l l' : sum_of f (l ++ l') = sum_of f l + sum_of f l'.
Proof. induction l; simpl; [|rewrite IHl]; ring. Qed.

Lemma sum_of_map {A B} (f : B -> R) (g : A -> B) l : sum_of f (map g l) = sum_of (fun a => f (g a)) l.
Proof. induction l; simpl; [|rewrite IHl]; reflexivity. Qed.

Lemma sum_of_flat_map {A B} (f : B -> R) (g : A -> list B) l :
  sum_of f (flat_map g l) = sum_of (fun a => sum_of f (g a)) l.
Proof. induction l; simpl; [|rewrite sum_of_app, IHl]; reflexivity. Qed.

Lemma sum_of_nonneg {A} (f : A -> R) l : (forall a, In a l -> 0 <= f a) -> 0 <= sum_of f l.
Proof.
  induction l as [|a l IH]; simpl; intros nonneg; [lra|].
  assert (0 <= f a) by auto. assert (0 <= sum_of f l) by auto. lra.
Qed.

(** From single outcomes to all sets of outcomes. *)
Theorem within_of_outcomes {A} eps (m m' : law A) :
  outcomes m = outcomes m' ->
  (forall a, In a (outcomes m) -> mass m a <= exp eps * mass m' a) -> within eps m m'.
Proof.
  intros same le. split; auto. intros event. unfold prob. rewrite <- same, <- sum_of_scal.
  apply sum_of_le. intros a into. destruct (event a); [auto | lra].
Qed.

(** Conversely each outcome is an event. *)
Lemma within_at {A} (eq_dec : forall a b : A, {a = b} + {a <> b}) eps (m m' : law A) a :
  NoDup (outcomes m) -> In a (outcomes m) -> within eps m m' -> mass m a <= exp eps * mass m' a.
Proof.
  intros once into [same le].
  assert (single : forall m : law A, NoDup (outcomes m) -> In a (outcomes m) ->
    prob m (fun b => if eq_dec b a then true else false) = mass m a).
  { clear. intros [l f]. unfold prob. simpl. induction l as [|b l IH]; simpl; intros once into; [easy|].
    inversion once; subst. destruct (eq_dec b a) as [->|differ].
    - rewrite (sum_of_ext _ (fun _ => 0 * 0)), sum_of_scal; [ring|].
      intros c into'. destruct (eq_dec c a) as [->|]; [easy | ring].
    - rewrite IH; auto; [ring | now destruct into]. }
  specialize (le (fun b => if eq_dec b a then true else false)).
  rewrite !single in le; auto; now rewrite <- same.
Qed.

(** Post-processing: whatever is computed from the outcome is as private. *)
Theorem within_post {A B} eps (m m' : law A) (f : A -> B) :
  within eps m m' ->
  forall event : B -> bool, prob m (fun a => event (f a)) <= exp eps * prob m' (fun a => event (f a)).
Proof. intros [_ le] event. apply le. Qed.

Lemma within_larger {A} eps eps' (m m' : law A) :
  (forall a, In a (outcomes m') -> 0 <= mass m' a) -> eps <= eps' -> within eps m m' -> within eps' m m'.
Proof.
  intros nonneg le [same within_eps]. split; auto. intros event.
  apply Rle_trans with (1 := within_eps event). apply Rmult_le_compat_r.
  - apply sum_of_nonneg. intros a into. destruct (event a); [auto | lra].
  - destruct le as [lt | ->]; [left; now apply exp_increasing | right; reflexivity].
Qed.

(** Basic composition of two stages: the epsilons add up. *)
Theorem within_then {A B} eps1 eps2 (first first' : law A) (second second' : A -> law B) :
  (forall a, In a (outcomes first) -> mass first a <= exp eps1 * mass first' a) ->
  (forall a, In a (outcomes first) -> 0 <= mass first a) ->
  outcomes first = outcomes first' ->
  (forall a, In a (outcomes first) -> outcomes (second a) = outcomes (second' a)) ->
  (forall a b, In a (outcomes first) -> In b (outcomes (second a)) ->
     0 <= mass (second' a) b /\ mass (second a) b <= exp eps2 * mass (second' a) b) ->
  within (eps1 + eps2) (then_ first second) (then_ first' second').
Proof.
  intros le1 nonneg same1 same2 le2. apply within_of_outcomes; simpl.
  - rewrite <- same1. assert (sub : forall a, In a (outcomes first) -> In a (outcomes first)) by auto.
    revert sub. generalize (outcomes first) at 1 3 4. intros l. induction l as [|a l IH]; simpl; intros sub; auto.
    rewrite IH, same2; auto.
  - intros [a b] into. apply in_flat_map in into. destruct into as (a' & into1 & into2).
    apply in_map_iff in into2. destruct into2 as (b' & same & into2). inversion same; subst. simpl.
    destruct (le2 a b) as [nonneg2 le]; auto. rewrite exp_plus.
    apply Rle_trans with (mass first a * (exp eps2 * mass (second' a) b)).
    + apply Rmult_le_compat_l; auto.
    + replace (exp eps1 * exp eps2 * (mass first' a * mass (second' a) b))
        with (exp eps1 * mass first' a * (exp eps2 * mass (second' a) b)) by ring.
      apply Rmult_le_compat_r; auto. apply Rmult_le_pos; auto. left. apply exp_pos.
Qed.

(** All outcomes of two stages are different. *)
Lemma then_once {A B} (first : law A) (second : A -> law B) : NoDup (outcomes first) ->
  (forall a, In a (outcomes first) -> NoDup (outcomes (second a))) -> NoDup (outcomes (then_ first second)).
Proof.
  simpl. generalize (outcomes first). intros l once. induction l as [|a l IH]; simpl; intros sub; [constructor|].
  inversion once; subst.
  assert (app : forall (l1 l2 : list (A * B)), NoDup l1 -> NoDup l2 ->
    (forall c, In c l1 -> ~ In c l2) -> NoDup (l1 ++ l2)).
  { clear. induction l1 as [|c l1 IH]; simpl; intros l2 o1 o2 apart; auto. inversion o1; subst.
    constructor; [rewrite in_app_iff; intros [?|?]; [easy|] | apply IH; auto].
    now apply (apart c); auto. }
  apply app; [| apply IH; auto |].
  - apply FinFun.Injective_map_NoDup; [|auto]. now intros b b' [=].
  - intros [a' b] into1 into2. apply in_map_iff in into1. destruct into1 as (b' & [= <- <-] & _).
    apply in_flat_map in into2. destruct into2 as (a' & into2 & into3).
    apply in_map_iff in into3. now destruct into3 as (b'' & [= -> ->] & _).
Qed.

(** Two stages make a probability law. *)
Lemma is_law_then {A B} (first : law A) (second : A -> law B) :
  is_law first -> (forall a, In a (outcomes first) -> is_law (second a)) -> is_law (then_ first second).
Proof.
  intros (once1 & nonneg1 & total1) laws. split; [|split].
  - apply then_once; auto. intros a into. apply (laws a into).
  - intros [a b] into. simpl in *. apply in_flat_map in into. destruct into as (a' & into1 & into2).
    apply in_map_iff in into2. destruct into2 as (b' & [= -> ->] & into2).
    apply Rmult_le_pos; [auto | now apply (laws a)].
  - simpl. rewrite sum_of_flat_map, <- total1. apply sum_of_ext. intros a into.
    rewrite sum_of_map. simpl. rewrite sum_of_scal. destruct (laws a into) as (_ & _ & ->). ring.
Qed.

(** A coin whose probability is public costs nothing: two mechanisms that are private make one that is. What
    forgets the side is post-processing. *)
Theorem coin_private {X A B} eps p (neighbours : X -> X -> Prop) (heads : X -> law A) (tails : X -> law B) :
  0 <= p <= 1 -> private eps neighbours heads -> private eps neighbours tails ->
  private eps neighbours (by_coin p heads tails).
Proof.
  intros p01 first second.
  assert (sides : forall x event, prob (by_coin p heads tails x) event =
    p * prob (heads x) (fun a => event (inl a)) + (1 - p) * prob (tails x) (fun b => event (inr b))).
  { intros x event. unfold prob, by_coin. simpl. rewrite sum_of_app, !sum_of_map, <- !sum_of_scal.
    f_equal; apply sum_of_ext; intros a _; destruct (event _); ring. }
  assert (way : forall x x', within eps (heads x) (heads x') -> within eps (tails x) (tails x') ->
    within eps (by_coin p heads tails x) (by_coin p heads tails x')).
  { intros x x' [same le] [same' le']. split; [simpl; now rewrite same, same'|]. intros event. rewrite !sides.
    specialize (le (fun a => event (inl a))). specialize (le' (fun b => event (inr b))).
    apply (Rmult_le_compat_l p) in le; [|lra]. apply (Rmult_le_compat_l (1 - p)) in le'; [|lra]. lra. }
  intros x x' pair. destruct (first x x' pair), (second x x' pair). split; now apply way.
Qed.

Lemma coin_once {X A B} p (heads : X -> law A) (tails : X -> law B) x : NoDup (outcomes (heads x)) ->
  NoDup (outcomes (tails x)) -> NoDup (outcomes (by_coin p heads tails x)).
Proof.
  simpl. generalize (outcomes (heads x)). intros l once once'. induction once as [|a l new once IH]; simpl.
  - apply FinFun.Injective_map_NoDup; auto. now intros b b' [=].
  - constructor; auto. rewrite in_app_iff, !in_map_iff. now intros [(a' & [= ->] & into) | (b & [=] & _)].
Qed.
