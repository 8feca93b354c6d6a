"""The course: eight labs in ``notebooks/exercises``, the checks of their exercises, and the command
that makes copies and marks.

``build``    ``./run_all.sh course --out DIR``: copies for students and instructors
``grade``    ``./run_all.sh course --grade FOLDER --out marks.csv``: marks of labs handed in
``checks``   how an answer is compared, and the message if it is not right yet
``figures``  ``show(figure, alt)``: a figure with a description for readers who cannot see it
``lab1`` ... the exercises of each lab: the right function, known mistakes, hints

The solved notebook is the source. Tags mark the kind of a cell: ``stub`` (an exercise as a student
gets it), ``solution``, ``check``, ``answer`` (to a question) and ``instructor`` (notes).
"""
