(** What may be left of a data set when some of its records are dropped. *)
From Coq Require Import Lia List.
Import ListNotations.

Section Leavings.

Context {A : Type}.

(** ** Definitions *)

(** All that may be left of [x] when [l] of its records are dropped. *)
Fixpoint leavings (l : nat) (x : list A) : list (list A) :=
  match l, x with
  | O, _ => [x]
  | S _, [] => []
  | S l', v :: x' => map (cons v) (leavings l x') ++ leavings l' x'
  end.

(** [y'] is [y] with one value less. *)
Definition drops (y y' : list A) : Prop := exists before v after, y = before ++ v :: after /\ y' = before ++ after.

(** ** Facts *)

Lemma leavings_0 x : leavings 0 x = [x].
Proof. now destruct x. Qed.

Lemma leavings_length l x y : In y (leavings l x) -> (length y + l = length x)%nat.
Proof.
  revert l y. induction x as [|v x IH]; intros [|l] y; simpl.
  - intros [<-|[]]. reflexivity.
  - easy.
  - intros [<-|[]]. simpl. lia.
  - intros into. apply in_app_iff in into. destruct into as [into | into].
    + apply in_map_iff in into. destruct into as (z & <- & into). apply IH in into. simpl. lia.
    + apply IH in into. lia.
Qed.

Lemma leavings_exist l x : (l <= length x)%nat -> leavings l x <> [].
Proof.
  revert l. induction x as [|v x IH]; intros [|l] le; simpl in *; try easy; try lia.
  intros none. apply app_eq_nil in none. now apply (IH l ltac:(lia)).
Qed.

Lemma leavings_keep l v x y : In y (leavings l x) -> In (v :: y) (leavings l (v :: x)).
Proof.
  destruct l; [rewrite leavings_0; intros [->|[]]; now left|]. simpl. intros into. apply in_app_iff. left.
  now apply in_map.
Qed.

Lemma leavings_drop l v x y : In y (leavings l x) -> In y (leavings (S l) (v :: x)).
Proof. intros into. simpl. apply in_app_iff. auto. Qed.

Lemma drop_any l x y : In y (leavings l x) -> y <> [] -> exists y', In y' (leavings (S l) x) /\ drops y y'.
Proof.
  revert l y. induction x as [|v x IH]; intros l y into some.
  - destruct l; simpl in into; [destruct into as [<-|[]]; easy | easy].
  - assert (cases : (exists z, y = v :: z /\ In z (leavings l x)) \/ (exists l', l = S l' /\ In y (leavings l' x))).
    { destruct l as [|l]; simpl in into.
      - destruct into as [<-|[]]. left. exists x. rewrite leavings_0. split; [auto | now left].
      - apply in_app_iff in into. destruct into as [into | into]; [left | right; now exists l].
        apply in_map_iff in into. destruct into as (z & <- & into). now exists z. }
    destruct cases as [(z & -> & rest) | (l' & -> & rest)].
    + exists z. split; [now apply leavings_drop | now exists [], v, z].
    + destruct (IH l' y rest some) as (y' & into' & less). exists y'. split; auto. now apply leavings_drop.
Qed.

(** What is left of one data set, less one value, is left of its neighbour when one more is dropped. *)
Lemma drop_changed l before v v' after y : In y (leavings l (before ++ v :: after)) -> y <> [] ->
  exists y', In y' (leavings (S l) (before ++ v' :: after)) /\ drops y y'.
Proof.
  revert l y. induction before as [|u before IH]; intros l y into some; cbn [app] in *.
  - assert (cases : (exists z, y = v :: z /\ In z (leavings l after)) \/ (exists l', l
      = S l' /\ In y (leavings l' after))).
    { destruct l as [|l]; simpl in into.
      - destruct into as [<-|[]]. left. exists after. rewrite leavings_0. split; [auto | now left].
      - apply in_app_iff in into. destruct into as [into | into]; [left | right; now exists l].
        apply in_map_iff in into. destruct into as (z & <- & into). now exists z. }
    destruct cases as [(z & -> & rest) | (l' & -> & rest)].
    + exists z. split; [now apply leavings_drop | now exists [], v, z].
    + destruct (drop_any l' after y rest some) as (y' & into' & less). exists y'. split; auto.
      now apply leavings_drop.
  - destruct l as [|l]; simpl in into.
    + destruct into as [<-|[]]. exists (u :: before ++ after). split.
      * apply leavings_keep. clear. induction before as [|w before IH]; cbn [app]; [|now apply leavings_keep].
        apply leavings_drop. rewrite leavings_0. now left.
      * now exists (u :: before), v, after.
    + apply in_app_iff in into. destruct into as [into | into].
      * apply in_map_iff in into. destruct into as (z & <- & into). destruct z as [|w z].
        -- (* only u is left: drop it *)
           assert (long := leavings_length _ _ _ into). rewrite app_length in long. simpl in long.
           assert (ex := leavings_exist (S l) (before ++ v' :: after) ltac:(rewrite app_length; simpl; lia)).
           destruct (leavings (S l) (before ++ v' :: after)) as [|y' ys] eqn:found; [easy|].
           assert (into' : In y' (leavings (S l) (before ++ v' :: after))) by (rewrite found; now left).
           assert (long' := leavings_length _ _ _ into'). rewrite app_length in long'. simpl in long'.
           destruct y' as [|]; [|simpl in long'; lia].
           exists []. split; [now apply leavings_drop | now exists [], u, []].
        -- destruct (IH (S l) (w :: z) into ltac:(easy)) as (y' & into' & b & c & d & same & same').
           exists (u :: y'). split; [now apply leavings_keep|]. exists (u :: b), c, d.
           rewrite same, same'. now split.
      * destruct (IH l y into some) as (y' & into' & less). exists y'. split; auto. now apply leavings_drop.
Qed.

End Leavings.
