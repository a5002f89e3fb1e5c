"""Webhooks: validation at ``kubectl apply``, and conversion between our versions, over TLS.

``admission.py`` and ``conversion.py`` turn a review into its answer, ``application.py`` gives them paths, ``server.py``
is the process that listens, with a certificate that may change (``certificate.py``), and ``supervisor.py`` keeps that
process running beside the manager: in one interpreter a busy reconciler would make clients wait
(``docs/adr/0002-webhooks-in-a-process-of-their-own.md``). ``configuration.py`` is the manifest that registers them.

Nothing here sends requests to Kubernetes or OpenStack: an answer follows from the request alone.
"""
