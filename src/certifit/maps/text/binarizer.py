"""The map from texts to a sparse matrix: a scikit-learn transformer, and what `Source.through` takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from numbers import Integral
from typing import Any, Self

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from certifit.data.columns import Array
from certifit.data.source import RowError, Source
from certifit.data.user_input import unchanged_on_error
from certifit.maps.text.terms import (
    Limits,
    Reading,
    Terms,
    Texts,
    arrow_texts,
    check_lengths,
    check_parameters,
    count_texts,
    found,
    n_texts,
    read_texts,
    refuse_invalid,
    stop_words,
    warn_of_idle,
)
from certifit.runtime import core, n_threads

_INT32 = np.iinfo(np.int32).max


class NoTermsError(ValueError):
    """No term of the texts is left to make a column of."""


class TextBinarizer(TransformerMixin, BaseEstimator):
    """Texts as a sparse matrix, a row per text and a column per term.

        X[i, j] = 1 where text i holds term j, else 0        binary=False: how often it does

    With term_weights="tfidf" rare terms weigh more and all texts the same: with t[i, j] as above, n texts and d_j of
    them with term j, X[i, j] = t[i, j] (1 + log((1 + n) / (1 + d_j))), each row divided by its length, as in
    scikit-learn's TfidfVectorizer.

    A word is a longest run of word characters (letters, digits, _; \\w of Python's `re` for all of Unicode) of at least
    min_length characters; a term is `n` words in a row after stop words are left out, joined by spaces. Lower case is
    that of `str.lower`, which knows no language: "I" becomes "i" in Turkish texts too. With the same settings terms,
    columns and counts are those of scikit-learn's CountVectorizer with its default token_pattern.

    Texts are not normalised: "é" in one character and "é" as e and a combining accent are two words, and the accent,
    which is no word character, ends the word. Use unicodedata.normalize("NFC", text) first where sources mix the two.

    Parameters
    ----------
    binary : bool, default True
        Whether a term occurs, rather than how often.
    ngram_range : (int, int), default (1, 1)
        Least and largest number of words of a term.
    min_df, max_df : int >= 1 or float in [0, 1], default 1 and 1.0
        Terms in fewer or in more texts get no column. An integer is a number of texts, a float a share of them.
    max_features : int >= 1, default None
        Only so many terms: those in the most texts (binary=False: that occur most often); of equals, the first.
    stop_words : None, "english" or a list of words, default None
        Words left out, after they are made lower case as the texts are. "english" is a short list of articles,
        pronouns, prepositions, conjunctions and auxiliary verbs; it holds no negation.
    lowercase : bool, default True
    min_length : int >= 1, default 2
        Shorter words are left out; 1 keeps single letters. 2 is scikit-learn's (?u)\\b\\w\\w+\\b.
    term_weights : None or "tfidf", default None
        How the terms of a text are weighed. Not with n_hash, which counts no texts.
    n_hash : int in [1, 2^31], default None
        None learns a vocabulary. A number makes that many columns and learns nothing: a term goes to column
        |h| mod n_hash, h = MurmurHash3_x86_32 (seed 0) of its UTF-8 bytes as a signed integer, as in scikit-learn's
        HashingVectorizer.
    signed : bool, default False
        With n_hash and binary=False: a term counts -1 where h < 0, so that terms that share a column cancel on average.
    invalid : {"error", "replace"}, default "error"
        Bytes that are no UTF-8, and halves of surrogate pairs: refuse them, or read them as U+FFFD, which belongs to no
        word.
    missing : {"error", "empty"}, default "error"
        None, NaN and Arrow's null: refuse them, or read them as a text without words. A CSV cannot tell the two apart.

    Attributes
    ----------
    vocabulary_ : dict {term: column}; columns go by the terms' code points. Not with n_hash
    document_counts_ : (n_columns,) texts of the fit that hold each term. Not with n_hash
    n_texts_ : int, texts of the fit

    >>> texts = ["Free entry, win FREE cash", "Are you free tonight?"]
    >>> map_ = TextBinarizer(stop_words="english").fit(texts)
    >>> map_.transform(texts).toarray()
    array([[1., 1., 1., 0., 1.],
           [0., 0., 1., 1., 0.]])
    >>> list(map_.get_feature_names_out())
    ['cash', 'entry', 'free', 'tonight', 'win']
    """

    def __init__(
        self,
        *,
        binary: bool = True,
        ngram_range: tuple[int, int] = (1, 1),
        min_df: float = 1,
        max_df: float = 1.0,
        max_features: int | None = None,
        stop_words: Any = None,
        lowercase: bool = True,
        min_length: int = 2,
        term_weights: str | None = None,
        n_hash: int | None = None,
        signed: bool = False,
        invalid: str = "error",
        missing: str = "error",
    ) -> None:
        self.binary = binary
        self.ngram_range = ngram_range
        self.min_df = min_df
        self.max_df = max_df
        self.max_features = max_features
        self.stop_words = stop_words
        self.lowercase = lowercase
        self.min_length = min_length
        self.term_weights = term_weights
        self.n_hash = n_hash
        self.signed = signed
        self.invalid = invalid
        self.missing = missing

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the terms of a list, array, Series or Arrow array of texts."""
        with unchanged_on_error(self):
            self._begin(None)
            texts = _some(read_texts(X, self._reading.missing))
            if self._n_hash is None:
                return self._take(found(texts, self._reading, self._limits, with_matrix=False)[0])
            refuse_invalid(self._hashed(texts)[3], self._reading.invalid)
            self.n_texts_ = n_texts(texts)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> sp.csr_array:
        """`fit`, then `transform`, reading the texts once."""
        with unchanged_on_error(self):
            self._begin(None)
            texts = _some(read_texts(X, self._reading.missing))
            if self._n_hash is not None:
                self.n_texts_ = n_texts(texts)
                return self._matrix(texts)
            terms, matrix = found(texts, self._reading, self._limits, with_matrix=True)
            self._take(terms)
        return self._weighed(_csr(matrix, len(self._terms.ends)))

    def fit_source(self, source: Source, column: str | None = None) -> Self:
        """The same from a column of a scan, in one pass; None is the only one. Rows of weight 0 are left out, other
        weights do not matter: texts are counted.
        """
        if not source.is_table:
            raise TypeError(f"TextBinarizer needs a source of Arrow tables. Got {type(source).__name__}.")
        if column is None and len(source.names) != 1:
            raise ValueError(f"column must name the texts. Got None, and the columns are {source.names}.")
        column = source.names[0] if column is None else column
        if column not in source.names:
            raise ValueError(f"column must be one of {source.names}. Got {column!r}.")
        with unchanged_on_error(self):
            return self._fit_column(source, column)

    def _fit_column(self, source: Source, column: str) -> Self:
        self._begin(column)
        about: dict[str, Any] = {"column": column, "reading": self._reading}
        try:
            if self._n_hash is not None:
                self.n_texts_ = source.reduce(partial(count_texts, **about))
                return self
            question = partial(Terms.of, **about)
            terms = source.remembered(("terms", column, self._reading), partial(source.reduce, question))
        except RowError as error:
            place = getattr(source, "place", "row {}".format)
            raise ValueError(f"Column {column!r}: {error.before} at {place(error.row)}{error.after}") from None
        return self._take(terms.chosen(self._limits))

    def transform(self, X: Any) -> sp.csr_array:
        """Texts x terms, CSR of float64 with sorted columns. Terms that the fit did not see have no column."""
        check_is_fitted(self, "n_texts_")
        return self._matrix(read_texts(X, self._reading.missing))

    def apply(self, rows: pa.Table | pa.RecordBatch | pa.Array | pa.ChunkedArray) -> sp.csr_array:
        """`transform` for a block: an Arrow column, or a table with the column that `fit_source` read."""
        check_is_fitted(self, "n_texts_")
        if isinstance(rows, pa.Table | pa.RecordBatch):
            names = rows.schema.names
            column = self._column if self._column is not None or len(names) != 1 else names[0]
            if column not in names:
                raise ValueError(f"Columns missing: {[column]}. Got {names}.")
            rows = rows.column(column)
        return self._matrix(arrow_texts(rows, self._reading.missing))

    def terms_of(self, text: str) -> list[str]:
        """The terms of one text in order, with repetition, before any limit."""
        check_is_fitted(self, "n_texts_")
        texts = read_texts([text])
        left_out = set(self._reading.stop_words)
        words = [word for word in core.words(texts, self._reading.core)[0] if word not in left_out]
        least, most = self._reading.ngram_range
        lengths = range(least, min(most, len(words)) + 1)
        return [" ".join(words[i : i + n]) for n in lengths for i in range(len(words) - n + 1)]

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> NDArray[np.object_]:
        """The terms in the order of the columns; with n_hash "hash0", "hash1", ..."""
        check_is_fitted(self, "n_texts_")
        if self._n_hash is not None:
            return np.array([f"hash{j}" for j in range(self._n_hash)], dtype=object)
        return np.array(self._terms.to_list(), dtype=object)

    @property
    def vocabulary_(self) -> dict[str, int]:
        """{term: column}, made on each call."""
        return {term: j for j, term in enumerate(self._known().to_list())}

    @property
    def document_counts_(self) -> NDArray[np.int64]:
        """Texts of the fit that hold each term."""
        return self._known().documents.copy()

    def to_plain(self) -> dict[str, Any]:
        """The parameters in JSON types, for `of_plain`."""
        parameters = self.get_params(deep=False)
        check_parameters(parameters)
        left_out = parameters["stop_words"]
        if left_out is not None and not isinstance(left_out, str):
            left_out = stop_words(left_out, self.lowercase)
        plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in parameters.items()}
        if plain["term_weights"] is None:  # what is not there is no weights, as in files of every version
            del plain["term_weights"]
        return plain | {"ngram_range": [int(n) for n in self.ngram_range], "stop_words": left_out}

    @classmethod
    def of_plain(cls, parameters: Mapping[str, Any]) -> Self:
        """The map, not fitted, with the parameters that `to_plain` wrote."""
        return cls(**{**parameters, "ngram_range": tuple(parameters["ngram_range"])})

    def to_state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """(JSON-able parameters and facts, arrays) that `from_state` takes: those of the fit."""
        check_is_fitted(self, "n_texts_")
        state = {"parameters": self._plain, "column": self._column, "n_texts": self.n_texts_}
        arrays: dict[str, Array] = {}
        if self._n_hash is None:
            arrays = {"letters": self._terms.letters, "ends": self._terms.ends, "documents": self._terms.documents}
        return state, arrays

    @classmethod
    def from_state(cls, state: Mapping[str, Any], arrays: Mapping[str, Array]) -> Self:
        """The fitted map that `to_state` wrote; a vocabulary that contradicts itself is refused."""
        made = cls.of_plain(state["parameters"])
        made._start(state["column"])
        made.n_texts_ = int(state["n_texts"])
        if made._n_hash is None:
            letters, ends, documents = (arrays[name] for name in ("letters", "ends", "documents"))
            made._take(Terms(letters, ends, documents, np.zeros_like(ends), made.n_texts_))
            made._compiled()
        return made

    def _begin(self, column: str | None) -> None:
        """Start a fit. What is odd about its settings is said here, and not again where it is saved or loaded."""
        self._start(column)
        if not isinstance(self.stop_words, str):
            warn_of_idle(list(self._reading.stop_words))

    def _start(self, column: str | None) -> None:
        """Check the parameters. Those set after the fit must not change what was fitted."""
        self._column, self._plain = column, self.to_plain()
        self._n_hash = None if self.n_hash is None else int(self.n_hash)
        self._signed = bool(self.signed)
        least, most = self.ngram_range
        left_out = tuple(stop_words(self.stop_words, self.lowercase))
        self._reading = Reading(
            bool(self.lowercase), int(self.min_length), (int(least), int(most)), left_out, self.invalid, self.missing
        )
        most_terms = None if self.max_features is None else int(self.max_features)
        self._limits = Limits(_plain(self.min_df), _plain(self.max_df), most_terms, bool(self.binary))
        for name in ("_terms", "_vocabulary", "n_texts_"):
            self.__dict__.pop(name, None)

    def _take(self, terms: Terms) -> Self:
        if not len(terms.ends):
            raise NoTermsError(
                f"Empty vocabulary: no term of {terms.n_rows:,} texts is left with min_df={self.min_df}, "
                f"max_df={self.max_df}, min_length={self.min_length} and {len(self._reading.stop_words)} stop words. "
                "Lower min_df, raise max_df, or keep single letters with min_length=1."
            )
        self._terms = terms
        self.n_texts_ = terms.n_rows
        return self

    def _known(self) -> Terms:
        if not hasattr(self, "_terms"):
            raise AttributeError("TextBinarizer has no vocabulary before fit, and none with n_hash.")
        return self._terms

    def _matrix(self, texts: Texts) -> sp.csr_array:
        if self._n_hash is not None:
            entries, n_columns = self._hashed(texts), self._n_hash
        else:
            n_columns = len(self._terms.ends)
            entries = core.count_terms(texts, self._reading.core, self._compiled(), self._limits.binary, n_threads())
        refuse_invalid(entries[3], self._reading.invalid)
        return self._weighed(_csr(entries, n_columns))

    def _weighed(self, counts: sp.csr_array) -> sp.csr_array:
        """Terms times their inverse document frequency, each text divided by its length, where that is asked for."""
        if self._plain.get("term_weights") is None:
            return counts
        rarity = 1 + np.log((1 + self.n_texts_) / (1 + self._terms.documents))
        counts.data = counts.data * rarity[counts.indices]
        begins, ends = counts.indptr[:-1], counts.indptr[1:]
        has_terms = ends > begins
        lengths = np.sqrt(np.add.reduceat(np.square(counts.data), begins[has_terms])) if has_terms.any() else np.ones(0)
        counts.data /= np.repeat(lengths, (ends - begins)[has_terms])
        return counts

    def _hashed(self, texts: Texts) -> Any:
        check_lengths(texts, self._reading, with_letters=False)
        left_out = list(self._reading.stop_words)
        rules = self._signed, self._limits.binary
        return core.hash_terms(texts, self._reading.core, left_out, self._n_hash, *rules, n_threads())

    def _compiled(self) -> Any:
        """The vocabulary as the core looks terms up: made once, and no part of a pickle."""
        if not hasattr(self, "_vocabulary"):
            offsets = np.concatenate([np.zeros(1, dtype=np.int64), self._terms.ends])
            self._vocabulary = core.vocabulary((self._terms.letters, offsets), list(self._reading.stop_words))
        return self._vocabulary

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("_vocabulary", None)
        return state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.transformer_tags.preserves_dtype = []
        return tags


def _plain(limit: Any) -> float:
    return int(limit) if isinstance(limit, Integral) else float(limit)


def _some(texts: Texts) -> Texts:
    if not n_texts(texts):
        raise ValueError("Found 0 texts. A fit needs at least one.")
    return texts


def _csr(entries: tuple[Array, Array, Array, int], n_columns: int) -> sp.csr_array:
    values, columns, offsets, _ = entries
    index = np.int32 if offsets[-1] <= _INT32 else np.int64
    parts = values, columns.astype(index, copy=False), offsets.astype(index)
    matrix = sp.csr_array(parts, shape=(len(offsets) - 1, n_columns))
    matrix.has_canonical_format = True
    return matrix
