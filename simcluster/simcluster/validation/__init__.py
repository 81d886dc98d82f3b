"""Validation by kind, with the API server's messages: the causes of its 422 answers.

Rules take a complete object (defaults are set) of the right types (``schema`` checks them) and
yield ``FieldError``s in kube-apiserver's order; only maps are visited in the object's order, which
is random in kube-apiserver. The rules follow ``pkg/apis/*/validation`` of v1.36.

Not checked: fields that only a kubelet could refuse, Windows pods, volume plugins that v1.36 no
longer has, and annotations that fields have replaced.
"""
