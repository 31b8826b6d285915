"""Who says which answers mean the same, and which are right: the protocol `Judge`, and the judges that ship.

Exact        equal after normalisation (`calcore.semantic.judges.exact`); offline
Embeddings   close by a sentence-transformers model (`calcore.semantic.judges.embeddings`); offline
Asked        a language model is asked (`calcore.semantic.judges.asked`)
"""

from __future__ import annotations

from calcore.semantic.judges.asked import Asked
from calcore.semantic.judges.embeddings import Embeddings
from calcore.semantic.judges.exact import Exact, normal_form
from calcore.semantic.judges.judge import Judge, JudgeError

__all__ = ["Asked", "Embeddings", "Exact", "Judge", "JudgeError", "normal_form"]
