"""What the API server refuses with 422, kind by kind, in its own words.

Every check takes a complete object (defaults are set) of the right types (``schema`` saw to that)
and returns ``FieldError``s in the order kube-apiserver lists them; maps are gone through in the
object's order, where kube-apiserver's is random. Follows ``pkg/apis/*/validation`` of v1.36.

Not checked: what only a kubelet could refuse, Windows pods, volume plugins that are gone from
v1.36, and the annotations that fields have replaced.
"""
