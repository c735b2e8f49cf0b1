(** The least and the greatest of finitely many numbers. *)
From Coq Require Import Reals Lra List.
Import ListNotations.
Open Scope R_scope.

Fixpoint least_of (a : list R) : R :=
  match a with [] => 0 | [v] => v | v :: a => Rmin v (least_of a) end.

Fixpoint greatest_of (a : list R) : R :=
  match a with [] => 0 | [v] => v | v :: a => Rmax v (greatest_of a) end.

Lemma least_of_le a v : In v a -> least_of a <= v.
Proof.
  induction a as [|w a IH]; [easy|]. intros into. destruct a as [|w' a].
  - destruct into as [->|[]]. simpl. lra.
  - change (least_of (w :: w' :: a)) with (Rmin w (least_of (w' :: a))).
    destruct into as [-> | into]; [apply Rmin_l|]. apply Rle_trans with (1 := Rmin_r _ _). now apply IH.
Qed.

Lemma least_of_in a : a <> [] -> In (least_of a) a.
Proof.
  induction a as [|w a IH]; [easy|]. intros _. destruct a as [|w' a]; [now left|].
  change (least_of (w :: w' :: a)) with (Rmin w (least_of (w' :: a))).
  destruct (Rle_dec w (least_of (w' :: a))) as [le | gt].
  - rewrite Rmin_left by auto. now left.
  - rewrite Rmin_right by lra. right. now apply IH.
Qed.

(** The greatest of B - f is B less the least of f. *)
Lemma greatest_of_least {A} B (f : A -> R) l : l <> [] ->
  greatest_of (map (fun a => B - f a) l) = B - least_of (map f l).
Proof.
  induction l as [|a l IH]; [easy|]. intros _. destruct l as [|a' l]; [reflexivity|].
  change (Rmax (B - f a) (greatest_of (map (fun a => B - f a) (a' :: l)))
    = B - Rmin (f a) (least_of (map f (a' :: l)))).
  rewrite IH by easy. unfold Rmax, Rmin. destruct Rle_dec, Rle_dec; lra.
Qed.

Lemma quotient_le a b d e : 0 <= a -> a <= b -> 0 < e <= d -> a / d <= b / e.
Proof.
  intros a0 le [e0 ed]. apply Rmult_le_compat; auto.
  - left. apply Rinv_0_lt_compat. lra.
  - now apply Rinv_le_contravar.
Qed.
